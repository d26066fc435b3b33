#!/usr/bin/env python3
"""EnvPool: agent steps a second of an Atari game with random actions, without a network.

    envpool_atari.py [--game Pong] [--environments 64] [--workers 2] [--seconds 5] [--batch B]

Synchronous where the batch is all environments (the default), else asynchronous. EnvPool's own settings: 4 frames a step, 84 x 84,
1 to 30 no-ops, no sticky actions, whole games; without its frame stack, which copies. One line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import envpool
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--environments", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--batch", type=int, default=0)
    options = parser.parse_args()
    batch = options.batch or options.environments
    pool = envpool.make_gymnasium(
        f"{options.game}-v5", num_envs=options.environments, batch_size=batch, num_threads=options.workers, stack_num=1,
        seed=1)  # fmt: skip
    actions = np.random.default_rng(1).integers(0, pool.action_space.n, (64, batch)).astype(np.int32)
    steps, row, start = 0, 0, None
    if batch == options.environments:
        pool.reset()
    else:
        pool.async_reset()
        _, _, _, _, info = pool.recv()
    while start is None or time.perf_counter() - start < options.seconds:
        if start is None and steps >= 8 * options.environments:  # The first ones warm up.
            steps, start = 0, time.perf_counter()
        if batch == options.environments:
            pool.step(actions[row % 64])
        else:
            pool.send(actions[row % 64], info["env_id"])
            _, _, _, _, info = pool.recv()
        steps += batch
        row += 1
    rate = steps / (time.perf_counter() - start)
    line = {"peer": "envpool", "version": envpool.__version__, "game": options.game, "environments": options.environments,
            "workers": options.workers, "how": "sync" if batch == options.environments else f"async, batches of {batch}",
            "steps_per_second": round(rate)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
