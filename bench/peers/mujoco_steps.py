#!/usr/bin/env python3
"""MuJoCo steps a second of EnvPool or Gymnasium (whichever is asked for), uniform-random actions drawn beforehand.

    mujoco_steps.py envpool|gymnasium [ENVIRONMENT...] [--seconds S] [--workers N...] [--each N]

EnvPool: N threads over N x EACH environments, synchronous and (half of them at a time) asynchronous. Gymnasium: one
environment in a Python loop for one worker, AsyncVectorEnv with one process an environment for more.
Each measurement is one line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import numpy as np

DRAWN = 64  # Rows of actions drawn beforehand, used in turn.


def result(peer, name, workers, how, steps, start):
    seconds = time.perf_counter() - start
    print("RESULT", json.dumps({"peer": peer, "environment": name, "workers": workers, "how": how,
                                "steps_per_second": round(steps / seconds)}), flush=True)  # fmt: skip


def draw(space, columns):
    shape = (DRAWN, columns, *space.shape)
    return list(np.random.default_rng(1).uniform(space.low, space.high, shape).astype(space.dtype))


def envpool_synchronous(name, workers, columns, seconds):
    import envpool

    environment = envpool.make_gymnasium(name, num_envs=columns, batch_size=columns, num_threads=workers, seed=1)
    actions = draw(environment.action_space, columns)
    environment.reset()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions[:16]:
            environment.step(action)
        steps += 16 * columns
    result("envpool", name, workers, "synchronous", steps, start)
    environment.close()


def envpool_asynchronous(name, workers, columns, seconds):
    import envpool

    batch = columns // 2
    environment = envpool.make_gymnasium(name, num_envs=columns, batch_size=batch, num_threads=workers, seed=1)
    actions = draw(environment.action_space, batch)
    environment.async_reset()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions[:16]:
            info = environment.recv()[4]
            environment.send(action, info["env_id"])
        steps += 16 * batch
    result("envpool", name, workers, "asynchronous", steps, start)
    environment.close()


def gymnasium_loop(name, seconds):
    import gymnasium

    environment = gymnasium.make(name)
    actions = [rows[0] for rows in draw(environment.action_space, 1)]
    environment.reset(seed=1)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            _, _, terminated, truncated, _ = environment.step(action)
            if terminated or truncated:
                environment.reset()
        steps += DRAWN
    result("gymnasium", name, 1, "Python loop", steps, start)


def gymnasium_processes(name, workers, columns, seconds):
    import gymnasium

    environment = gymnasium.make_vec(name, num_envs=columns, vectorization_mode="async")
    actions = draw(environment.single_action_space, columns)
    environment.reset(seed=1)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions[:16]:
            environment.step(action)
        steps += 16 * columns
    result("gymnasium", name, workers, "AsyncVectorEnv", steps, start)
    environment.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["envpool", "gymnasium"])
    parser.add_argument("environments", nargs="*", default=["HalfCheetah-v5", "Humanoid-v5"])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--each", type=int, default=8, help="environments per worker")
    options = parser.parse_args()
    for name in options.environments:
        for workers in options.workers:
            columns = workers * options.each
            if options.peer == "envpool":
                envpool_synchronous(name, workers, columns, options.seconds)
                envpool_asynchronous(name, workers, columns, options.seconds)
            elif workers == 1:
                gymnasium_loop(name, options.seconds)
            else:
                gymnasium_processes(name, workers, columns, options.seconds)


if __name__ == "__main__":
    main()
