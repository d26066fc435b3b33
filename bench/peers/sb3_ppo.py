#!/usr/bin/env python3
"""Stable-Baselines3's PPO with the hyper-parameters of its zoo, one torch thread (its fastest here).

    sb3_ppo.py speed cartpole|lunarlander [--seed N] [--steps N]       steps a second, nothing else inside
    sb3_ppo.py efficiency cartpole [--seed N] [--steps N]              steps and seconds until it is solved

Solved: a mean of at least 475 over 100 greedy episodes, reached twice in a row at evaluations every 2,560 steps; the
first of the two counts. Evaluation is outside the clock, and ends the run once solved.
The result is one line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

SETTINGS = {
    "cartpole": ("CartPole-v1", 8, 100_000,
                 {"n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20, "ent_coef": 0.0,
                  "learning_rate": lambda left: 1e-3 * left, "clip_range": lambda left: 0.2 * left}),
    "lunarlander": ("LunarLander-v3", 16, 7 * 16 * 1024,  # Whole collection passes.
                    {"n_steps": 1024, "batch_size": 64, "gae_lambda": 0.98, "gamma": 0.999, "n_epochs": 4,
                     "ent_coef": 0.01}),
}  # fmt: skip
EVALUATION_EVERY, EVALUATION_EPISODES, SOLVED = 2560, 100, 475


class Evaluation(BaseCallback):
    """Plays greedy episodes between two collection passes and stops the clock while it does."""

    def __init__(self, name, seed, clock):
        super().__init__()
        self.environments = gymnasium.make_vec(name, EVALUATION_EPISODES, vectorization_mode="vector_entry_point")
        self.seed, self.clock = seed + 10_000_019, clock
        self.means, self.solved = [], None

    def evaluate(self):
        observations, _ = self.environments.reset(seed=self.seed)
        returns, live = np.zeros(EVALUATION_EPISODES), np.ones(EVALUATION_EPISODES, bool)
        while live.any():
            actions, _ = self.model.predict(observations, deterministic=True)
            observations, rewards, terminated, truncated, _ = self.environments.step(actions)
            returns += rewards * live
            live &= ~(terminated | truncated)
        return returns.mean()

    def _on_step(self):
        # SB3 asks after every step; the pass that ended is learned from before the next one begins.
        return self.solved is None

    def _on_rollout_start(self):
        if self.num_timesteps == 0 or self.num_timesteps % EVALUATION_EVERY:
            return
        self.clock.pause()
        self.means.append((self.num_timesteps, self.clock.seconds(), self.evaluate()))
        if len(self.means) >= 2 and min(self.means[-1][2], self.means[-2][2]) >= SOLVED:
            self.solved = self.means[-2]
        self.clock.resume()


class Clock:
    """Seconds since it was made, without those between pause() and resume()."""

    def __init__(self):
        self.start, self.paused_at, self.out = time.perf_counter(), None, 0.0

    def seconds(self):
        return (self.paused_at or time.perf_counter()) - self.start - self.out

    def pause(self):
        self.paused_at = time.perf_counter()

    def resume(self):
        self.out += time.perf_counter() - self.paused_at
        self.paused_at = None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["speed", "efficiency"])
    parser.add_argument("task", choices=sorted(SETTINGS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="default: the zoo's 100,000; LunarLander: 7 passes of 16,384")
    options = parser.parse_args()
    torch.set_num_threads(1)
    name, environments, total, settings = SETTINGS[options.task]
    total = options.steps or total
    model = PPO("MlpPolicy", make_vec_env(name, environments, seed=options.seed), seed=options.seed, device="cpu",
                **settings)  # fmt: skip
    clock = Clock()
    evaluation = Evaluation(name, options.seed, clock) if options.mode == "efficiency" else None
    model.learn(total, callback=evaluation)
    seconds = clock.seconds()
    line = {"peer": "sb3", "version": stable_baselines3.__version__, "environment": name, "mode": options.mode,
            "seed": options.seed, "steps": model.num_timesteps, "seconds": round(seconds, 3),
            "steps_per_second": round(model.num_timesteps / seconds)}  # fmt: skip
    if evaluation:
        steps, at, mean = evaluation.solved or (None, None, None)
        line |= {"solved_steps": steps, "solved_seconds": at and round(at, 3), "solved_mean": mean,
                 "evaluations": [(steps, round(mean, 1)) for steps, _, mean in evaluation.means]}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
