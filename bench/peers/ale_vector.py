#!/usr/bin/env python3
"""The Arcade Learning Environment's own vector environment: agent steps a second of a game with random actions.

    ale_vector.py [--game Pong] [--environments 64] [--workers 2] [--seconds 5]

4 frames a step, 84 x 84, up to 30 no-ops, no sticky actions, whole games, one frame a stack. One line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import ale_py
import numpy as np
from ale_py.vector_env import AtariVectorEnv


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--environments", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    game = "".join("_" + c.lower() if c.isupper() else c for c in options.game).lstrip("_")
    envs = AtariVectorEnv(
        game=game, num_envs=options.environments, num_threads=options.workers, thread_affinity_offset=-1, stack_num=1,
        repeat_action_probability=0.0, noop_max=30, use_fire_reset=False, episodic_life=False, reward_clipping=False)  # fmt: skip
    actions = np.random.default_rng(1).integers(0, envs.single_action_space.n, (64, options.environments))
    envs.reset(seed=1)
    steps, row, start = 0, 0, None
    while start is None or time.perf_counter() - start < options.seconds:
        if start is None and row >= 8:  # The first ones warm up.
            steps, start = 0, time.perf_counter()
        envs.step(actions[row % 64])
        steps += options.environments
        row += 1
    rate = steps / (time.perf_counter() - start)
    line = {"peer": "ale", "version": ale_py.__version__, "game": options.game, "environments": options.environments,
            "workers": options.workers, "how": "vector environment", "steps_per_second": round(rate)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
