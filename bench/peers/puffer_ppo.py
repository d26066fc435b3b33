#!/usr/bin/env python3
"""PufferLib's own CartPole with its own settings, without LSTM, on the CPU: raw and training steps a second.

    puffer_ppo.py [--seconds S]

Its environment is a float32 copy with a cap of 200 steps, so returns are not Gymnasium's. 2 x 4,096 environments, horizon 64,
one epoch, minibatches of 32,768, a network of 4-128-(2, 1): settings of the package's .ini. Each measurement is one line,
"RESULT " and a JSON object.
"""

import argparse
import json
import os
import sys
import time

import numpy as np

NAME = "puffer_cartpole"


def report(mode, steps, seconds, **more):
    line = {"peer": "puffer", "version": "3.0.0", "environment": NAME, "mode": mode, "steps": steps,
            "seconds": round(seconds, 3), "steps_per_second": round(steps / seconds)}  # fmt: skip
    print("RESULT", json.dumps(line | more), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of training")
    options = parser.parse_args()
    sys.argv = sys.argv[:1]  # PufferLib reads it too.

    import pufferlib.ocean
    import torch
    from pufferlib import pufferl

    settings = pufferl.load_config(NAME)
    settings["train"].update(device="cpu", env=NAME, use_rnn=False)
    settings["rnn_name"] = None
    settings["vec"].update(backend="Serial", num_envs=2)
    for key in ("num_workers", "batch_size", "zero_copy"):
        settings["vec"].pop(key, None)

    environment = pufferlib.ocean.env_creator(NAME)(num_envs=settings["env"]["num_envs"])
    environment.reset()
    actions = np.random.default_rng(1).integers(0, 2, (64, environment.num_agents)).astype(np.int32)
    passes, start = 0, time.perf_counter()
    while time.perf_counter() - start < 2:
        environment.step(actions[passes % 64])
        passes += 1
    report("raw", passes * environment.num_agents, time.perf_counter() - start)
    environment.close()

    vector = pufferl.load_env(NAME, settings)
    policy = pufferl.load_policy(settings, vector)
    trainer = pufferl.PuffeRL(settings["train"], vector, policy)
    trainer.print_dashboard = lambda *_, **__: None
    trainer.evaluate()  # The first round warms up.
    trainer.train()
    before, start, episode_return = trainer.global_step, time.perf_counter(), None
    while time.perf_counter() - start < options.seconds:
        trainer.evaluate()
        logs = trainer.train() or {}
        episode_return = logs.get("environment/episode_return", episode_return)
    report("training", trainer.global_step - before, time.perf_counter() - start,
           parameters=sum(parameter.numel() for parameter in policy.parameters()), threads=torch.get_num_threads(),
           episode_return=episode_return)  # fmt: skip
    os._exit(0)  # Its threads do not end by themselves.


if __name__ == "__main__":
    main()
