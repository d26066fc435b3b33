"""The example of the Ray paper (Moritz et al. 2018, figure 3) on menger.runtime, or, with `import ray` instead, on Ray.

    PYTHONPATH=python python examples/ray_paper.py

Simulators are actors, a policy is made and improved by tasks, and a task drives it all. What it learns is to balance a pole by
random search over a linear policy (Mania et al. 2018).
"""

import sys

import numpy as np

import menger.runtime as ray

STEPS_MAX = 200


class Pole:
    """Barto, Sutton and Anderson 1983: a pole of 1 m and 0.1 kg on a cart of 1 kg, 20 ms a step."""

    def reset(self, random):
        self.state = random.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, force):
        place, speed, angle, turning = self.state
        sine, cosine = np.sin(angle), np.cos(angle)
        total = (force + 0.05 * turning**2 * sine) / 1.1
        angular = (9.8 * sine - cosine * total) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        linear = total - 0.05 * angular * cosine / 1.1
        self.state = self.state + 0.02 * np.array([speed, linear, turning, angular])
        return self.state, abs(place) > 2.4 or abs(angle) > 0.21


@ray.remote(max_restarts=10, max_task_retries=10)
class Simulator:
    """Keeps a state between calls: its environment and its random stream.

    One whose process or machine dies begins anew elsewhere, and what it was doing is done again.
    """

    def __init__(self, seed):
        self.pole, self.random = Pole(), np.random.default_rng(seed)

    def explore(self, policy):
        """A direction in which the policy was changed, and how much longer the pole stood with it than with the opposite."""
        direction = self.random.normal(size=4)
        return direction, self.balance(policy + 0.5 * direction) - self.balance(policy - 0.5 * direction)

    def balance(self, policy):
        state = self.pole.reset(self.random)
        for step in range(STEPS_MAX):
            state, fallen = self.pole.step(10.0 if policy @ state > 0 else -10.0)
            if fallen:
                return step
        return STEPS_MAX


@ray.remote
def create_policy():
    return np.zeros(4)  # Push right where its product with the state is positive.


@ray.remote
def update_policy(policy, *rollouts):
    return policy + sum(direction * ahead for direction, ahead in rollouts) / STEPS_MAX / len(rollouts)


@ray.remote
def train_policy(simulators, iterations):
    """Calls return at once: each iteration only says what is to be done, and the last get waits."""
    actors = [Simulator.remote(seed) for seed in range(simulators)]
    policy = create_policy.remote()
    for _ in range(iterations):
        rollouts = [actor.explore.remote(policy) for actor in actors]
        policy = update_policy.remote(policy, *rollouts)
    return ray.get(policy)


def main():
    ray.init()
    policy = train_policy.remote(simulators=10, iterations=60)
    judges = [Simulator.remote(1000 + seed) for seed in range(4)]
    trials = [judge.balance.remote(policy) for judge in judges for _ in range(5)]
    done, _slow = ray.wait(trials, num_returns=15)  # Whoever is first.
    mean = np.mean(ray.get(done))
    print(f"the pole stands for {mean:.0f} of {STEPS_MAX} steps")
    ray.shutdown()
    return 0 if mean > 180 else 1


if __name__ == "__main__":
    sys.exit(main())
