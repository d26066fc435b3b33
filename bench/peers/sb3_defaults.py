#!/usr/bin/env python3
"""What Stable-Baselines3 learns by its own defaults, as somebody gets them who names an algorithm and an environment and nothing else.

    sb3_defaults.py ppo|a2c|dqn ENVIRONMENT STEPS SEED [--episodes 100]

One environment, "MlpPolicy", no wrapper, one thread of torch. What is reported is the mean return of deterministic episodes after the
last step. One line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import stable_baselines3
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", choices=["ppo", "a2c", "dqn"])
    parser.add_argument("environment")
    parser.add_argument("steps", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    made = {"ppo": PPO, "a2c": A2C, "dqn": DQN}[options.algorithm]
    model = made("MlpPolicy", options.environment, seed=options.seed, device="cpu")
    start = time.perf_counter()
    model.learn(options.steps)
    seconds = time.perf_counter() - start
    evaluation = make_vec_env(options.environment, n_envs=1, seed=options.seed + 10_000_019)
    mean, _ = evaluate_policy(model, evaluation, n_eval_episodes=options.episodes, deterministic=True)
    print("RESULT", json.dumps({"peer": "sb3", "version": stable_baselines3.__version__, "algorithm": options.algorithm,
                                "environment": options.environment, "steps": model.num_timesteps, "seed": options.seed,
                                "seconds": round(seconds, 1), "return": round(float(mean), 2)}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
