#!/usr/bin/env python3
"""EnvPool: environment steps a second with one worker thread, uniform-random actions drawn beforehand.

    envpool_steps.py [--seconds S] [ENVIRONMENT...]

Synchronous, with 1, 64 and 1024 environments. Its worker and the calling thread take turns, so this is one core's work.
Each measurement is one line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import envpool
import numpy as np

ENVIRONMENTS = [
    "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "LunarLander-v3",
    "LunarLanderContinuous-v3",
]  # fmt: skip
DRAWN = 64  # Rows of actions drawn beforehand, used in turn.


def measure(name, columns, seconds):
    environment = envpool.make_gymnasium(name, num_envs=columns, batch_size=columns, num_threads=1, seed=1)
    space, random = environment.action_space, np.random.default_rng(1)
    if hasattr(space, "n"):
        actions = list(random.integers(0, space.n, (DRAWN, columns)).astype(np.int32))
    else:
        actions = list(random.uniform(space.low, space.high, (DRAWN, columns, *space.shape)).astype(space.dtype))
    environment.reset()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            environment.step(action)
        steps += DRAWN * columns
    spent = time.perf_counter() - start
    line = {"peer": "envpool", "version": envpool.__version__, "environment": name, "columns": columns,
            "how": "1 thread", "steps": steps, "seconds": round(spent, 3), "steps_per_second": round(steps / spent)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
    environment.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", default=ENVIRONMENTS)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    options = parser.parse_args()
    for name in options.environments:
        for columns in (1, 64, 1024):
            measure(name, columns, options.seconds)


if __name__ == "__main__":
    main()
