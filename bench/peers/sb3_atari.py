#!/usr/bin/env python3
"""Stable-Baselines3's PPO on an Atari game: agent steps a second with learning.

    sb3_atari.py [--game Pong] [--seconds 40] [--threads 2] [--vector dummy|subproc]

Its zoo's settings, which are CleanRL's but for a falling clip range: 8 environments x 128 steps, minibatches of 256, 4 epochs, Nature's
network, 84 x 84 x 4. The clock starts after the first update. One line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import ale_py
import gymnasium
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack


class Clock(BaseCallback):
    """Counts whole rollouts with their updates, from the second on."""

    def __init__(self, seconds):
        super().__init__()
        self.limit, self.rollouts, self.start, self.end = seconds, 0, None, None

    def _on_rollout_start(self):
        self.rollouts += 1
        now = time.perf_counter(), self.num_timesteps
        if self.rollouts == 2:
            self.start = now
        self.end = now

    def _on_step(self):
        return self.start is None or self.end[0] - self.start[0] < self.limit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--vector", choices=["dummy", "subproc"], default="subproc")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    gymnasium.register_envs(ale_py)
    kind = SubprocVecEnv if options.vector == "subproc" else DummyVecEnv
    environments = VecFrameStack(make_atari_env(f"{options.game}NoFrameskip-v4", n_envs=8, seed=1, vec_env_cls=kind), 4)
    model = PPO("CnnPolicy", environments, n_steps=128, batch_size=256, n_epochs=4, learning_rate=lambda left: 2.5e-4 * left,
                clip_range=lambda left: 0.1 * left, ent_coef=0.01, vf_coef=0.5, device="cpu")  # fmt: skip
    clock = Clock(options.seconds)
    model.learn(10_000_000, callback=clock)
    seconds, steps = clock.end[0] - clock.start[0], clock.end[1] - clock.start[1]
    line = {"peer": "sb3", "version": stable_baselines3.__version__, "game": options.game, "threads": options.threads,
            "how": options.vector, "steps": steps, "seconds": round(seconds, 1),
            "steps_per_second": round(steps / seconds)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
    environments.close()


if __name__ == "__main__":
    main()
