#!/usr/bin/env python3
"""Stable-Baselines3's DQN: environment steps a second, learning included.

    sb3_dqn.py cartpole|lunarlander|pong [--seconds 40] [--threads 2]

One environment, as its zoo has it, and the settings of dqn_tasks.py. The clock starts after the first update. One line, "RESULT " and a
JSON object.
"""

import time

import dqn_tasks
import stable_baselines3
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack


class Clock(BaseCallback):
    """Counts whole turns of collecting and learning, from the first update on."""

    def __init__(self, seconds):
        super().__init__()
        self.limit, self.start, self.end = seconds, None, None

    def _on_rollout_start(self):
        self.end = time.perf_counter(), self.num_timesteps, self.model._n_updates
        if self.start is None and self.model._n_updates > 0:
            self.start = self.end

    def _on_step(self):
        return self.start is None or self.end[0] - self.start[0] < self.limit


def make(task):
    if not task.pixels:
        return "MlpPolicy", make_vec_env(task.environment, n_envs=1, seed=1)
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    return "CnnPolicy", VecFrameStack(make_atari_env(f"{task.environment}NoFrameskip-v4", n_envs=1, seed=1), 4)


def main():
    options = dqn_tasks.options(__doc__)
    task = dqn_tasks.TASKS[options.task]
    torch.set_num_threads(options.threads)
    policy, environments = make(task)
    model = DQN(policy, environments, learning_rate=task.learning_rate, buffer_size=task.capacity, learning_starts=task.start,
                batch_size=task.batch_size, train_freq=task.train_every, gradient_steps=1, target_update_interval=task.target_every,
                exploration_initial_eps=task.epsilon, exploration_final_eps=task.epsilon, seed=1, device="cpu")  # fmt: skip
    clock = Clock(options.seconds)
    model.learn(1_000_000_000, callback=clock)
    seconds, steps, updates = (end - start for start, end in zip(clock.start, clock.end))
    dqn_tasks.report("sb3", stable_baselines3.__version__, options, steps, updates, seconds)


if __name__ == "__main__":
    main()
