#!/usr/bin/env python3
"""SBX's SAC and TD3, which are Stable-Baselines3's with networks and updates in JAX: environment steps a second, learning included.

    sbx_continuous.py sac|td3 halfcheetah|pendulum [--seconds 40] [--threads 2]

As sb3_continuous.py; with 1 thread, XLA has one. One line, "RESULT " and a JSON object.
"""

import importlib.metadata
import os

import continuous_tasks


def main():
    options = continuous_tasks.options(__doc__)
    os.environ["NPROC"] = str(options.threads)  # How many threads XLA's CPU client starts; read when JAX is loaded.
    os.environ["JAX_PLATFORMS"] = "cpu"
    import sb3_continuous
    import sbx
    import torch

    torch.set_num_threads(options.threads)
    version = importlib.metadata.version("sbx-rl")
    sb3_continuous.train({"sac": sbx.SAC, "td3": sbx.TD3}, "sbx", version, options)


if __name__ == "__main__":
    main()
