#!/usr/bin/env python3
"""Stable-Baselines3's SAC and TD3: environment steps a second, learning included.

    sb3_continuous.py sac|td3 halfcheetah|pendulum [--seconds 40] [--threads 2]

One environment, as its zoo has it, and the settings of continuous_tasks.py. The clock starts after the first updates. One line,
"RESULT " and a JSON object. sbx_continuous.py does the same with SBX, whose algorithms are called as these are.
"""

import time

import continuous_tasks
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise


class Clock(BaseCallback):
    """Counts whole turns of a step and an update, from the first updates on."""

    def __init__(self, seconds):
        super().__init__()
        self.limit, self.start, self.end = seconds, None, None

    def _on_rollout_start(self):
        self.end = time.perf_counter(), self.num_timesteps, self.model._n_updates
        if self.start is None and self.model._n_updates >= continuous_tasks.UPDATES_BEFORE:
            self.start = self.end

    def _on_step(self):
        return self.start is None or self.end[0] - self.start[0] < self.limit


def settings(algorithm, actions):
    """What SAC takes, or TD3."""
    if algorithm == "sac":
        return {"ent_coef": "auto", "target_entropy": "auto"}
    noise = NormalActionNoise(np.zeros(actions), np.full(actions, continuous_tasks.EXPLORATION_NOISE))
    return {"policy_delay": continuous_tasks.POLICY_DELAY, "action_noise": noise,
            "target_policy_noise": continuous_tasks.TARGET_NOISE,
            "target_noise_clip": continuous_tasks.TARGET_NOISE_CLIP}  # fmt: skip


def train(algorithms, peer, version, options):
    """`algorithms` are SAC's class and TD3's."""
    task = continuous_tasks.TASKS[options.task]
    environments = make_vec_env(task.environment, n_envs=1, seed=1)
    model = algorithms[options.algorithm](
        "MlpPolicy", environments, learning_rate=continuous_tasks.LEARNING_RATE, buffer_size=task.capacity, learning_starts=task.start,
        batch_size=continuous_tasks.BATCH_SIZE, tau=continuous_tasks.TARGET_RATE, gamma=continuous_tasks.DISCOUNT, train_freq=1,
        gradient_steps=1, policy_kwargs={"net_arch": [task.hidden, task.hidden]}, seed=1, device="cpu",
        **settings(options.algorithm, environments.action_space.shape[0]))  # fmt: skip
    clock = Clock(options.seconds)
    model.learn(1_000_000_000, callback=clock)
    seconds, steps, updates = (end - start for start, end in zip(clock.start, clock.end))
    continuous_tasks.report(peer, version, options, steps, updates, seconds)


def main():
    options = continuous_tasks.options(__doc__)
    torch.set_num_threads(options.threads)
    algorithms = {"sac": stable_baselines3.SAC, "td3": stable_baselines3.TD3}
    train(algorithms, "sb3", stable_baselines3.__version__, options)


if __name__ == "__main__":
    main()
