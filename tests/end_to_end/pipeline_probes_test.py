"""Environments whose answers are known exactly, learned in every shape of data flow: where collecting, replay and learning are apart
something may be lost, doubled or out of date that no score of CartPole shows."""

import importlib.util
import os
import sys
import unittest

from program import ROOT, ProgramTest

sys.path.insert(0, str(ROOT / "python"))

# A chain of five places: 1 goes right and 0 left, and whoever leaves it to the right has earned 1. The bandit shows the action that pays.
MODULE = """
import gymnasium, numpy
from gymnasium import spaces

class Chain(gymnasium.Env):
    observation_space = spaces.Box(0, 1, (5,), numpy.float32)
    action_space = spaces.Discrete(2)

    def shown(self):
        return numpy.eye(5, dtype=numpy.float32)[self.place]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(5))
        return self.shown(), {}

    def step(self, action):
        if action == 1 and self.place == 4:
            return self.shown(), 1.0, True, False, {}
        self.place = min(4, self.place + 1) if action == 1 else max(0, self.place - 1)
        return self.shown(), 0.0, False, False, {}

class Bandit(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (1,), numpy.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.right = int(self.np_random.integers(2))
        return numpy.array([2 * self.right - 1], numpy.float32), {}

    def step(self, action):
        return numpy.array([2 * self.right - 1], numpy.float32), 1.0 if action == self.right else -1.0, True, False, {}
"""

RECIPE = """
environment = "probes:{environment}"
algorithm = "dqn"
steps = 8_000
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 4
horizon = 4
[network]
hidden = [32]
[dqn]
discount = 0.9
learning_rate = 0.002
target_every = 50
epsilon_end = 1.0
[replay]
capacity = 8_000
min_size = 200
batch_size = 32
training_intensity = 16
[evaluation]
every = 0
episodes = 20
"""

SHAPES = {
    "synchronous": [],
    "turns": ["topology.kind=turns", "topology.collectors=2"],
    "threads": ["topology.kind=threads", "topology.collectors=2"],
    "processes": ["topology.kind=processes", "topology.collectors=2"],
    "apart": ["topology.kind=processes", "topology.collectors=2", "topology.inference=apart"],
    "apex": ["topology.kind=threads", "topology.collectors=2", "replay.sampler=prioritised", "replay.initial_priority=error"],
}


def values_of_the_chain(discount=0.9, places=5):
    """Q* by iterating Bellman's equation, [places][left, right]."""
    values = [[0.0, 0.0] for _ in range(places)]
    for _ in range(200):
        best = [max(pair) for pair in values]
        values = [[discount * best[max(0, place - 1)], 1.0 if place == places - 1 else discount * best[place + 1]] for place in range(places)]
    return values


class PipelineProbesTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "probes.py").write_text(MODULE)
        os.environ["MENGER_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "MENGER_PYTHON")

    def learned(self, environment, shape, *more):
        """The policy that training in this shape leaves."""
        import menger

        recipe = self.folder / f"{environment}.toml"
        recipe.write_text(RECIPE.format(environment=environment))
        settings = [word for setting in [*SHAPES[shape], *more] for word in ("--set", setting)]
        self.succeed("train", recipe.name, "--quiet", "--out", shape, *settings)
        self.succeed("export", shape)
        return menger.load(self.folder / shape / "policy.menger")

    def test_values_of_a_chain_are_the_known_ones_in_every_shape(self):
        import numpy

        for shape in SHAPES:
            policy = self.learned("Chain", shape)
            policy.act(numpy.eye(5, dtype=numpy.float32))
            error = numpy.abs(policy.outputs - values_of_the_chain()).max()
            self.assertLess(error, 0.05, f"{shape}: {policy.outputs}")

    def test_a_bandit_is_solved_in_every_shape(self):
        import numpy

        for shape in SHAPES:
            policy = self.learned("Bandit", shape, "steps=3000")
            self.assertEqual(policy.act(numpy.array([[-1], [1]], numpy.float32)).tolist(), [0, 1], shape)
            self.assertLess(numpy.abs(policy.outputs - [[1, -1], [-1, 1]]).max(), 0.05, f"{shape}: {policy.outputs}")


if __name__ == "__main__":
    unittest.main()
