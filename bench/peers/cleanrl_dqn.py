#!/usr/bin/env python3
"""DQN on one page after the published settings of CleanRL's dqn.py and dqn_atari.py (own code): steps a second, learning included.

    cleanrl_dqn.py cartpole|lunarlander|pong [--seconds 40] [--threads 2]

As there: one environment in a vector, Stable-Baselines3's replay buffer, squared errors; batches, rates and network are those of
dqn_tasks.py. The clock starts after the first update. One line, "RESULT " and a JSON object.
"""

import random
import time

import dqn_tasks
import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.buffers import ReplayBuffer
from torch import nn

DISCOUNT = 0.99


def make_pong():
    """dqn_atari.py's wrappers, in its order."""
    import ale_py
    from gymnasium.wrappers import FrameStackObservation, GrayscaleObservation, ResizeObservation
    from stable_baselines3.common.atari_wrappers import ClipRewardEnv, EpisodicLifeEnv, FireResetEnv, MaxAndSkipEnv, NoopResetEnv

    gymnasium.register_envs(ale_py)
    game = MaxAndSkipEnv(NoopResetEnv(gymnasium.make("PongNoFrameskip-v4"), noop_max=30), skip=4)
    game = ClipRewardEnv(FireResetEnv(EpisodicLifeEnv(game)))
    return FrameStackObservation(GrayscaleObservation(ResizeObservation(game, (84, 84))), 4)


def make_network(task, environments):
    actions = int(environments.single_action_space.n)
    if not task.pixels:
        inputs = int(np.prod(environments.single_observation_space.shape))
        return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, actions))
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))  # fmt: skip


class Training:
    def __init__(self, task):
        self.task, self.steps, self.updates = task, 0, 0
        self.environments = SyncVectorEnv(
            [make_pong if task.pixels else lambda: gymnasium.make(task.environment)], autoreset_mode=AutoresetMode.SAME_STEP
        )
        self.network, self.target = make_network(task, self.environments), make_network(task, self.environments)
        self.target.load_state_dict(self.network.state_dict())
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=task.learning_rate)
        self.replay = ReplayBuffer(task.capacity, self.environments.single_observation_space, self.environments.single_action_space,
                                   "cpu", optimize_memory_usage=task.pixels, handle_timeout_termination=False)  # fmt: skip
        self.observations, _ = self.environments.reset(seed=1)

    def values(self, network, observations):
        return network(observations.float() / 255.0 if self.task.pixels else observations.float())

    def act(self):
        if self.steps < self.task.start or random.random() < self.task.epsilon:
            return self.environments.action_space.sample()
        with torch.no_grad():
            return self.values(self.network, torch.as_tensor(self.observations)).argmax(1).numpy()

    def step(self):
        actions = self.act()
        following, rewards, terminated, truncated, infos = self.environments.step(actions)
        seen = following
        if (terminated | truncated)[0]:  # What was seen last belongs to the episode that ended.
            seen = following.copy()
            seen[0] = infos["final_obs"][0]
        self.replay.add(self.observations, seen, actions, rewards, terminated, [{}])
        self.observations, self.steps = following, self.steps + 1
        if self.steps > self.task.start and self.steps % self.task.train_every == 0:
            self.learn()
        if self.steps % self.task.target_every == 0:
            self.target.load_state_dict(self.network.state_dict())

    def learn(self):
        batch = self.replay.sample(self.task.batch_size)
        with torch.no_grad():
            following = self.values(self.target, batch.next_observations).max(1).values
            goals = batch.rewards.flatten() + DISCOUNT * following * (1 - batch.dones.flatten())
        chosen = self.values(self.network, batch.observations).gather(1, batch.actions).squeeze()
        loss = nn.functional.mse_loss(chosen, goals)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.updates += 1


def main():
    options = dqn_tasks.options(__doc__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    random.seed(1)
    training = Training(dqn_tasks.TASKS[options.task])
    while training.updates == 0:
        training.step()
    start, steps, updates = time.perf_counter(), training.steps, training.updates
    while time.perf_counter() - start < options.seconds:
        for _ in range(training.task.train_every):
            training.step()
    seconds = time.perf_counter() - start
    dqn_tasks.report("cleanrl", torch.__version__, options, training.steps - steps, training.updates - updates, seconds)


if __name__ == "__main__":
    main()
