#!/usr/bin/env python3
"""PPO in one page, after the published defaults of CleanRL's ppo.py (own code), on CartPole-v1.

    cleanrl_ppo.py [--seed N] [--steps N]

4 environments x 128 steps, 4 minibatches, 4 epochs, learning rate 2.5e-4 falling to 0, discount .99, lambda .95, clip .2,
clipped value loss, entropy .01, value .5, gradient norm .5. One torch thread. The learning rate falls over --steps
(CleanRL: 500,000). The result is one line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

ENVIRONMENTS, HORIZON, EPOCHS, MINIBATCHES = 4, 128, 4, 4


def linear(inputs, outputs, gain=2**0.5):
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.value = nn.Sequential(linear(4, 64), nn.Tanh(), linear(64, 64), nn.Tanh(), linear(64, 1, 1.0))
        self.policy = nn.Sequential(linear(4, 64), nn.Tanh(), linear(64, 64), nn.Tanh(), linear(64, 2, 0.01))

    def forward(self, observations, actions=None):
        distribution = Categorical(logits=self.policy(observations))
        if actions is None:
            actions = distribution.sample()
        return actions, distribution.log_prob(actions), distribution.entropy(), self.value(observations).flatten()


def advantages_of(rewards, values, dones, last_value, last_done):
    advantages, carried = torch.zeros_like(rewards), 0
    for t in reversed(range(HORIZON)):
        live = 1 - (last_done if t == HORIZON - 1 else dones[t + 1])
        next_value = last_value if t == HORIZON - 1 else values[t + 1]
        carried = rewards[t] + 0.99 * next_value * live - values[t] + 0.99 * 0.95 * live * carried
        advantages[t] = carried
    return advantages


def learn(agent, optimiser, observations, actions, log_probabilities, advantages, values):
    returns = advantages + values
    for _ in range(EPOCHS):
        for rows in np.random.permutation(ENVIRONMENTS * HORIZON).reshape(MINIBATCHES, -1):
            _, log_probability, entropy, value = agent(observations[rows], actions[rows])
            ratio = (log_probability - log_probabilities[rows]).exp()
            advantage = advantages[rows]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            policy_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
            clipped = values[rows] + (value - values[rows]).clamp(-0.2, 0.2)
            value_loss = 0.5 * torch.max((value - returns[rows]) ** 2, (clipped - returns[rows]) ** 2).mean()
            optimiser.zero_grad()
            (policy_loss - 0.01 * entropy.mean() + 0.5 * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimiser.step()


def train(environments, agent, seed, updates):
    optimiser = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    observations = torch.zeros(HORIZON, ENVIRONMENTS, 4)
    actions, log_probabilities, rewards, dones, values = (torch.zeros(HORIZON, ENVIRONMENTS) for _ in range(5))
    following = torch.as_tensor(environments.reset(seed=seed)[0])
    done = torch.zeros(ENVIRONMENTS)
    for update in range(updates):
        optimiser.param_groups[0]["lr"] = 2.5e-4 * (1 - update / updates)
        for t in range(HORIZON):
            observations[t], dones[t] = following, done
            with torch.no_grad():
                actions[t], log_probabilities[t], _, values[t] = agent(following)
            shown, reward, terminated, truncated, _ = environments.step(actions[t].long().numpy())
            rewards[t] = torch.as_tensor(reward, dtype=torch.float32)
            following, done = torch.as_tensor(shown), torch.as_tensor(terminated | truncated).float()
        with torch.no_grad():
            advantages = advantages_of(rewards, values, dones, agent.value(following).flatten(), done)
        learn(agent, optimiser, observations.view(-1, 4), actions.view(-1), log_probabilities.view(-1),
              advantages.view(-1), values.view(-1))  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    np.random.seed(options.seed)
    torch.manual_seed(options.seed)
    environments = gymnasium.vector.SyncVectorEnv(
        [lambda: gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("CartPole-v1"))] * ENVIRONMENTS,
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    agent = Agent()
    updates = options.steps // (ENVIRONMENTS * HORIZON)
    start = time.perf_counter()
    train(environments, agent, options.seed, updates)
    seconds = time.perf_counter() - start
    steps = updates * ENVIRONMENTS * HORIZON
    line = {"peer": "cleanrl", "version": "style, own code", "environment": "CartPole-v1", "mode": "speed",
            "seed": options.seed, "steps": steps, "seconds": round(seconds, 3),
            "steps_per_second": round(steps / seconds)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
