#!/usr/bin/env python3
"""Stable-Baselines3's A2C on LunarLander-v3 with the hyper-parameters of its zoo, one torch thread.

    sb3_a2c.py [--seed N] [--steps N] [--rmsprop torch|tensorflow]

Prints one line, "RESULT " and a JSON object: the greedy return over 100 episodes with the last parameters, and the mean
return of the training episodes that ended in each quarter of the run. The zoo uses torch's RMSprop.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

NAME, EPISODES, QUARTERS = "LunarLander-v3", 100, 4


class Episodes(BaseCallback):
    """Keeps when every training episode ended and its return."""

    def __init__(self):
        super().__init__()
        self.ended = []

    def _on_step(self):
        self.ended += [(self.num_timesteps, info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info]
        return True

    def quarters(self, total):
        returns = [[] for _ in range(QUARTERS)]
        for steps, value in self.ended:
            returns[min(QUARTERS - 1, (steps - 1) * QUARTERS // total)].append(value)
        return [round(float(np.mean(values)), 1) if values else None for values in returns]


def evaluate(model, seed):
    environments = [gymnasium.make(NAME) for _ in range(EPISODES)]
    observations = np.stack([each.reset(seed=seed + i)[0] for i, each in enumerate(environments)])
    returns, live = np.zeros(EPISODES), list(range(EPISODES))
    while live:
        actions, _ = model.predict(observations[live], deterministic=True)
        for i, action in zip(list(live), actions):
            observations[i], reward, terminated, truncated, _ = environments[i].step(int(action))
            returns[i] += reward
            if terminated or truncated:
                live.remove(i)
    return returns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--rmsprop", choices=["torch", "tensorflow"], default="torch")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = {}
    if options.rmsprop == "tensorflow":
        settings = {"policy_kwargs": {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"alpha": 0.99, "eps": 1e-5}}}
    model = A2C("MlpPolicy", make_vec_env(NAME, 8, seed=options.seed), seed=options.seed, device="cpu", n_steps=5,
                gamma=0.995, ent_coef=1e-5, learning_rate=lambda left: 0.00083 * left, **settings)  # fmt: skip
    episodes, start = Episodes(), time.perf_counter()
    model.learn(options.steps, callback=episodes)
    seconds = time.perf_counter() - start
    returns = evaluate(model, options.seed + 10_000_019)
    print("RESULT", json.dumps({
        "peer": "sb3", "version": stable_baselines3.__version__, "environment": NAME, "rmsprop": options.rmsprop,
        "seed": options.seed, "steps": model.num_timesteps, "seconds": round(seconds, 1),
        "steps_per_second": round(model.num_timesteps / seconds), "quarters": episodes.quarters(options.steps),
        "final": round(float(returns.mean()), 1), "deviation": round(float(returns.std()), 1)}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
