#!/usr/bin/env python3
"""Gymnasium's own vector environments: steps a second, uniform-random actions drawn beforehand.

    gymnasium_hosting.py [--seconds S] [--columns N...] [ENVIRONMENT...]

SyncVectorEnv steps all in this process, AsyncVectorEnv has a process for each environment and shared memory. Resets are in the
same step; the environments are made without their checker, as Menger's host makes them. An ENVIRONMENT is an id, or
module:Class of a module beside the working folder. Each measurement is one line, "RESULT " and a JSON object.
"""

import argparse
import importlib
import json
import sys
import time

import gymnasium
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

DRAWN = 128  # Actions drawn beforehand, used in turn.


def maker(name):
    module, colon, attribute = name.removeprefix("host:").partition(":")
    if colon:
        return getattr(importlib.import_module(module), attribute)
    return lambda: gymnasium.make(module, disable_env_checker=True)


def measure(name, kind, columns, seconds):
    environment = kind([maker(name)] * columns, autoreset_mode=AutoresetMode.SAME_STEP)
    environment.action_space.seed(1)
    actions = [environment.action_space.sample() for _ in range(DRAWN)]
    environment.reset(seed=1)
    for action in actions:
        environment.step(action)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            environment.step(action)
        steps += DRAWN * columns
    rate = steps / (time.perf_counter() - start)
    environment.close()
    line = {"peer": kind.__name__, "version": gymnasium.__version__, "environment": name, "columns": columns,
            "steps_per_second": round(rate)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", default=["CartPole-v1"])
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--path", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    options = parser.parse_args()
    sys.path[:0] = options.path
    for name in options.environments:
        for columns in options.columns:
            for kind in (SyncVectorEnv, AsyncVectorEnv):
                measure(name, kind, columns, options.seconds)


if __name__ == "__main__":
    main()
