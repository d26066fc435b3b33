#!/usr/bin/env python3
"""Gymnasium: environment steps a second, one core, uniform-random actions drawn beforehand.

    gymnasium_steps.py [--seconds S] [ENVIRONMENT...]

One environment in a Python loop with resets; and, where Gymnasium has one, its NumPy vector version with 64.
Each measurement is one line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import gymnasium

ENVIRONMENTS = [
    "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "LunarLander-v3",
    "LunarLanderContinuous-v3",
]  # fmt: skip
DRAWN = 1024  # Actions drawn beforehand, used in turn.


def result(name, columns, how, steps, seconds):
    line = {"peer": "gymnasium", "version": gymnasium.__version__, "environment": name, "columns": columns, "how": how,
            "steps": steps, "seconds": round(seconds, 3), "steps_per_second": round(steps / seconds)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


def loop(name, seconds):
    environment = gymnasium.make(name)
    environment.action_space.seed(1)
    actions = [environment.action_space.sample() for _ in range(DRAWN)]
    environment.reset(seed=1)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            _, _, terminated, truncated, _ = environment.step(action)
            if terminated or truncated:
                environment.reset()
        steps += DRAWN
    result(name, 1, "Python loop", steps, time.perf_counter() - start)


def vector(name, columns, seconds):
    environment = gymnasium.make_vec(name, num_envs=columns, vectorization_mode="vector_entry_point")
    environment.action_space.seed(1)
    actions = [environment.action_space.sample() for _ in range(DRAWN)]
    environment.reset(seed=1)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            environment.step(action)
        steps += DRAWN * columns
    result(name, columns, "NumPy vector", steps, time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", default=ENVIRONMENTS)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    options = parser.parse_args()
    for name in options.environments:
        loop(name, options.seconds)
        if gymnasium.spec(name).vector_entry_point is not None:
            vector(name, 64, options.seconds)


if __name__ == "__main__":
    main()
