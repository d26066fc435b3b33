#!/usr/bin/env python3
"""PPO on an Atari game over EnvPool, after the published settings of CleanRL's ppo_atari_envpool.py (own code): agent steps a second.

    cleanrl_atari.py [--game Pong] [--seconds 40] [--threads 2] [--steps N] [--seed 1]

8 environments x 128 steps, 4 minibatches of 256, 4 epochs, Nature's network, 84 x 84 x 4. The clock starts after the first update.
One line, "RESULT " and a JSON object. With --steps it learns for that many agent steps instead, the learning rate falling as in
CleanRL's run of 10M, and prints its curve: the mean of the last 100 whole games, raw points, every 50,000 steps.
"""

import argparse
import collections
import json
import time

import envpool
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

ENVIRONMENTS, HORIZON, EPOCHS, MINIBATCHES = 8, 128, 4, 4
ANNEALED_OVER = 10_000_000  # Agent steps.


def layer(made, gain=2**0.5):
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.trunk = nn.Sequential(
            layer(nn.Conv2d(4, 32, 8, 4)), nn.ReLU(), layer(nn.Conv2d(32, 64, 4, 2)), nn.ReLU(),
            layer(nn.Conv2d(64, 64, 3, 1)), nn.ReLU(), nn.Flatten(), layer(nn.Linear(3136, 512)), nn.ReLU())  # fmt: skip
        self.policy, self.value = layer(nn.Linear(512, actions), 0.01), layer(nn.Linear(512, 1), 1.0)

    def forward(self, observations, actions=None):
        features = self.trunk(observations / 255.0)
        distribution = Categorical(logits=self.policy(features))
        if actions is None:
            actions = distribution.sample()
        return actions, distribution.log_prob(actions), distribution.entropy(), self.value(features).flatten()


class Scores:
    """Raw points of whole games, by however many lives and clipped rewards they were learned."""

    def __init__(self):
        self.running, self.last = np.zeros(ENVIRONMENTS), collections.deque(maxlen=100)

    def add(self, info, truncated):
        self.running += info["reward"]
        over = np.logical_or(info["terminated"], truncated)
        self.last.extend(self.running[over])
        self.running[over] = 0


class Training:
    def __init__(self, game, threads, seed):
        self.scores = Scores()
        self.pool = envpool.make_gymnasium(f"{game}-v5", num_envs=ENVIRONMENTS, episodic_life=True, reward_clip=True, seed=seed,
                                           num_threads=threads)  # fmt: skip
        self.agent = Agent(self.pool.action_space.n)
        self.optimiser = torch.optim.Adam(self.agent.parameters(), lr=2.5e-4, eps=1e-5)
        self.observations = torch.zeros(HORIZON, ENVIRONMENTS, 4, 84, 84)
        self.actions, self.log_probabilities, self.rewards, self.dones, self.values = (
            torch.zeros(HORIZON, ENVIRONMENTS) for _ in range(5))  # fmt: skip
        self.next, self.done = torch.as_tensor(self.pool.reset()[0]).float(), torch.zeros(ENVIRONMENTS)

    @torch.no_grad()
    def collect(self):
        for t in range(HORIZON):
            self.observations[t], self.dones[t] = self.next, self.done
            self.actions[t], self.log_probabilities[t], _, self.values[t] = self.agent(self.next)
            observation, reward, terminated, truncated, info = self.pool.step(self.actions[t].int().numpy())
            self.scores.add(info, truncated)
            self.rewards[t] = torch.as_tensor(reward).float()
            self.next = torch.as_tensor(observation).float()
            self.done = torch.as_tensor(terminated | truncated).float()
        advantages, last = torch.zeros(HORIZON, ENVIRONMENTS), 0
        following = self.agent(self.next)[3]
        for t in reversed(range(HORIZON)):
            live = 1 - (self.done if t == HORIZON - 1 else self.dones[t + 1])
            value = following if t == HORIZON - 1 else self.values[t + 1]
            last = self.rewards[t] + 0.99 * value * live - self.values[t] + 0.99 * 0.95 * live * last
            advantages[t] = last
        return advantages

    def learn(self, advantages):
        rows = HORIZON * ENVIRONMENTS
        observations = self.observations.view(-1, 4, 84, 84)
        returns = (advantages + self.values).view(-1)
        actions, old, values, advantages = (x.view(-1) for x in (self.actions, self.log_probabilities, self.values, advantages))
        for _ in range(EPOCHS):
            for i in np.random.permutation(rows).reshape(MINIBATCHES, -1):
                _, log_probability, entropy, value = self.agent(observations[i], actions[i])
                ratio, advantage = (log_probability - old[i]).exp(), advantages[i]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                policy_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.9, 1.1)).mean()
                clipped = values[i] + (value - values[i]).clamp(-0.1, 0.1)
                value_loss = 0.5 * torch.max((value - returns[i]) ** 2, (clipped - returns[i]) ** 2).mean()
                self.optimiser.zero_grad()
                (policy_loss - 0.01 * entropy.mean() + 0.5 * value_loss).backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), 0.5)
                self.optimiser.step()


def print_curve(training, steps):
    start = time.perf_counter()
    for step in range(0, steps, HORIZON * ENVIRONMENTS):
        training.optimiser.param_groups[0]["lr"] = 2.5e-4 * (1 - step / ANNEALED_OVER)
        training.learn(training.collect())
        step += HORIZON * ENVIRONMENTS
        if step // 50_000 > (step - HORIZON * ENVIRONMENTS) // 50_000:
            print(f"{step},{np.mean(training.scores.last or [np.nan]):.2f},{time.perf_counter() - start:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    training = Training(options.game, options.threads, options.seed)
    if options.steps:
        print("steps,mean of the last 100 games,seconds")
        return print_curve(training, options.steps)
    training.learn(training.collect())
    start, updates = time.perf_counter(), 0
    while time.perf_counter() - start < options.seconds:
        training.learn(training.collect())
        updates += 1
    seconds, steps = time.perf_counter() - start, updates * HORIZON * ENVIRONMENTS
    line = {"peer": "cleanrl + envpool", "version": envpool.__version__, "game": options.game, "threads": options.threads,
            "how": "sync", "steps": steps, "seconds": round(seconds, 1), "steps_per_second": round(steps / seconds)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
