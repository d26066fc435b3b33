#!/usr/bin/env python3
"""Stable-Baselines3's SAC and TD3: how they learn, beside the recipes of the same names.

    sb3_curve.py sac|td3 [--environment HalfCheetah-v5] [--steps 300000] [--every 25000] [--episodes 10] [--last 100] [--threads 1]
                 [--seed 2]

The settings of experiments/halfcheetah_sac.toml and halfcheetah_td3.toml: those of continuous_tasks.py, but for TD3's learning rate,
10,000 random steps first.
Each `every` steps a line of steps, seconds and the mean return of `episodes` whole greedy episodes; after the last step, of `last`.
"""

import argparse
import time

import continuous_tasks
import stable_baselines3
import torch
from sb3_continuous import settings
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

START = 10_000
LEARNING_RATE = {"sac": continuous_tasks.LEARNING_RATE, "td3": 1e-3}  # TD3's is its paper's.


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", choices=continuous_tasks.ALGORITHMS)
    parser.add_argument("--environment", default="HalfCheetah-v5")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--every", type=int, default=25_000)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--last", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=2)
    return parser.parse_args()


def main():
    chosen = options()
    torch.set_num_threads(chosen.threads)
    algorithm = {"sac": stable_baselines3.SAC, "td3": stable_baselines3.TD3}[chosen.algorithm]
    environments = make_vec_env(chosen.environment, n_envs=1, seed=chosen.seed)
    model = algorithm(
        "MlpPolicy", environments, learning_rate=LEARNING_RATE[chosen.algorithm], buffer_size=chosen.steps, learning_starts=START,
        batch_size=continuous_tasks.BATCH_SIZE, tau=continuous_tasks.TARGET_RATE, gamma=continuous_tasks.DISCOUNT, train_freq=1,
        gradient_steps=1, policy_kwargs={"net_arch": [256, 256]}, seed=chosen.seed, device="cpu",
        **settings(chosen.algorithm, environments.action_space.shape[0]))  # fmt: skip
    watched = make_vec_env(chosen.environment, n_envs=1, seed=chosen.seed + 1_000)
    began = time.perf_counter()
    while model.num_timesteps < chosen.steps:
        model.learn(min(chosen.every, chosen.steps - model.num_timesteps), reset_num_timesteps=False)
        episodes = chosen.last if model.num_timesteps >= chosen.steps else chosen.episodes
        mean, deviation = evaluate_policy(model, watched, n_eval_episodes=episodes)
        print(f"{chosen.algorithm} {model.num_timesteps} steps, {time.perf_counter() - began:.0f} s: "
              f"{mean:.0f} +- {deviation:.0f} over {episodes} episodes", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
