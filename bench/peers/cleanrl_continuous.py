#!/usr/bin/env python3
"""SAC and TD3 on one page, after the papers and in the manner of CleanRL (own code): steps a second, learning included.

    cleanrl_continuous.py sac|td3 halfcheetah|pendulum [--seconds 40] [--threads 2]

One environment in a vector, a replay of numpy arrays, torch's modules as they are; the settings are those of continuous_tasks.py. The
clock starts after the first updates. One line, "RESULT " and a JSON object.
"""

import copy
import math
import time

import continuous_tasks as tasks
import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn

LOG_STANDARD_DEVIATION = (-5.0, 2.0)


def make_network(inputs, hidden, outputs):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def make_adam(*parameters):
    return torch.optim.Adam(parameters, lr=tasks.LEARNING_RATE)


def descend(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


class Replay:
    """The newest `capacity` transitions, drawn uniformly."""

    def __init__(self, capacity, observation, action):
        shapes = {"observations": observation, "actions": action, "rewards": 1, "following": observation, "terminated": 1}
        self.columns = {name: np.zeros((capacity, width), np.float32) for name, width in shapes.items()}
        self.capacity, self.added = capacity, 0
        self.random = np.random.default_rng(1)

    def add(self, **transition):
        for name, value in transition.items():
            self.columns[name][self.added % self.capacity] = value
        self.added += 1

    def draw(self):
        rows = self.random.integers(min(self.added, self.capacity), size=tasks.BATCH_SIZE)
        return [torch.from_numpy(column[rows]) for column in self.columns.values()]


class Learner:
    """What both algorithms share: two critics and the targets that follow them. Actions in here lie in [-1, 1]."""

    def __init__(self, observation, actions, hidden, actor_outputs):
        self.actions = actions
        self.actor = make_network(observation, hidden, actor_outputs)
        self.critics = nn.ModuleList([make_network(observation + actions, hidden, 1) for _ in range(2)])
        self.target_critics = copy.deepcopy(self.critics)
        self.actor_optimiser, self.critics_optimiser = make_adam(*self.actor.parameters()), make_adam(*self.critics.parameters())
        self.updates = 0

    def learn(self, observations, actions, rewards, following, terminated):
        with torch.no_grad():
            goals = rewards + tasks.DISCOUNT * (1 - terminated) * self.following_values(following)
        inputs = torch.cat((observations, actions), 1)
        descend(self.critics_optimiser, sum(nn.functional.mse_loss(critic(inputs), goals) for critic in self.critics))
        self.updates += 1
        self.step_actor(observations)

    def lesser(self, critics, observations, actions):
        inputs = torch.cat((observations, actions), 1)
        return torch.minimum(*(critic(inputs) for critic in critics))

    @torch.no_grad()
    def follow(self, target, network):
        for old, new in zip(target.parameters(), network.parameters()):
            old.lerp_(new, tasks.TARGET_RATE)


class Sac(Learner):
    """Haarnoja et al. 2018b, equations 5, 7, 9 and 18, with one temperature for all states."""

    def __init__(self, observation, actions, hidden):
        super().__init__(observation, actions, hidden, 2 * actions)
        self.log_temperature = torch.zeros(1, requires_grad=True)
        self.temperature_optimiser = make_adam(self.log_temperature)

    def draw(self, observations):
        """Actions and the logarithms of their densities (appendix C of Haarnoja et al. 2018a)."""
        means, spreads = self.actor(observations).chunk(2, 1)
        low, high = LOG_STANDARD_DEVIATION
        spreads = low + (high - low) / 2 * (torch.tanh(spreads) + 1)
        noise = torch.randn_like(means)
        raw = means + spreads.exp() * noise
        logarithms = -noise.square() / 2 - spreads - math.log(2 * math.pi) / 2
        # log(1 - tanh(x)^2), without taking the logarithm of what may round to 0.
        logarithms = logarithms - 2 * (math.log(2) - raw - nn.functional.softplus(-2 * raw))
        return torch.tanh(raw), logarithms.sum(1, keepdim=True)

    @torch.no_grad()
    def act(self, observations):
        return self.draw(observations)[0]

    def following_values(self, following):
        actions, logarithms = self.draw(following)
        return self.lesser(self.target_critics, following, actions) - self.log_temperature.exp() * logarithms

    def step_actor(self, observations):
        actions, logarithms = self.draw(observations)
        temperature = self.log_temperature.exp().detach()
        descend(self.actor_optimiser, (temperature * logarithms - self.lesser(self.critics, observations, actions)).mean())
        missing = logarithms.detach().mean() - self.actions  # The entropy aimed at is -1 for each element of an action.
        descend(self.temperature_optimiser, -(self.log_temperature.exp() * missing).sum())
        self.follow(self.target_critics, self.critics)


class Td3(Learner):
    """Fujimoto et al. 2018, algorithm 1."""

    def __init__(self, observation, actions, hidden):
        super().__init__(observation, actions, hidden, actions)
        self.target_actor = copy.deepcopy(self.actor)

    @torch.no_grad()
    def act(self, observations):
        actions = torch.tanh(self.actor(observations))
        return (actions + tasks.EXPLORATION_NOISE * torch.randn_like(actions)).clamp(-1, 1)

    def following_values(self, following):
        actions = torch.tanh(self.target_actor(following))
        noise = (tasks.TARGET_NOISE * torch.randn_like(actions)).clamp(-tasks.TARGET_NOISE_CLIP, tasks.TARGET_NOISE_CLIP)
        return self.lesser(self.target_critics, following, (actions + noise).clamp(-1, 1))

    def step_actor(self, observations):
        if self.updates % tasks.POLICY_DELAY != 0:
            return
        actions = torch.tanh(self.actor(observations))
        descend(self.actor_optimiser, -self.critics[0](torch.cat((observations, actions), 1)).mean())
        self.follow(self.target_critics, self.critics)
        self.follow(self.target_actor, self.actor)


class Training:
    def __init__(self, algorithm, task):
        self.task, self.steps = task, 0
        self.environments = SyncVectorEnv([lambda: gymnasium.make(task.environment)], autoreset_mode=AutoresetMode.SAME_STEP)
        space = self.environments.single_action_space
        self.middle, self.half = (space.high + space.low) / 2, (space.high - space.low) / 2
        observation, actions = self.environments.single_observation_space.shape[0], space.shape[0]
        self.replay = Replay(task.capacity, observation, actions)
        self.learner = {"sac": Sac, "td3": Td3}[algorithm](observation, actions, task.hidden)
        self.observations, _ = self.environments.reset(seed=1)

    def act(self):
        if self.steps < self.task.start:
            return self.replay.random.uniform(-1, 1, (1, self.learner.actions)).astype(np.float32)
        return self.learner.act(torch.as_tensor(self.observations, dtype=torch.float32)).numpy()

    def step(self):
        actions = self.act()
        following, rewards, terminated, truncated, infos = self.environments.step(self.middle + self.half * actions)
        seen = infos["final_obs"][0] if (terminated | truncated)[0] else following[0]  # Of the episode that ended.
        self.replay.add(observations=self.observations[0], actions=actions[0], rewards=rewards[0], following=seen,
                        terminated=terminated[0])  # fmt: skip
        self.observations, self.steps = following, self.steps + 1
        if self.steps > self.task.start:
            self.learner.learn(*self.replay.draw())


def main():
    options = tasks.options(__doc__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    training = Training(options.algorithm, tasks.TASKS[options.task])
    while training.learner.updates < tasks.UPDATES_BEFORE:
        training.step()
    start, steps, updates = time.perf_counter(), training.steps, training.learner.updates
    while time.perf_counter() - start < options.seconds:
        training.step()
    seconds = time.perf_counter() - start
    tasks.report("cleanrl", torch.__version__, options, training.steps - steps, training.learner.updates - updates, seconds)


if __name__ == "__main__":
    main()
