"""Bounds of actions that do not fit a policy's first noise are told, and `transforms.scale_actions` makes them fit."""

import importlib.util
import os
import re
import sys
import unittest

from program import ProgramTest

if all(importlib.util.find_spec(name) for name in ("gymnasium", "numpy")):
    import numpy
    from exporting import OnnxPolicy, menger

# The best action is 40, beyond what a policy finds that begins at 0 with a deviation of 1, and -2 where bounds allow it.
MODULE = """
import gymnasium, numpy
from gymnasium.spaces import Box

class Wide(gymnasium.Env):
    observation_space = Box(-1, 1, (2,), numpy.float32)
    action_space = Box(numpy.float32([0, -3]), numpy.float32([50, -1]))
    best = numpy.float32([40, -2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 2).astype(numpy.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        size = (self.action_space.high - self.action_space.low) / 2
        reward = -float((((action - self.best) / size) ** 2).sum())
        return numpy.zeros(2, numpy.float32), reward, True, False, {}

class Usual(Wide):
    action_space = Box(-2, 2, (2,))
    best = numpy.float32([1, -1])

class Endless(Wide):
    action_space = Box(0, numpy.inf, (2,))

class Choices(Wide):
    action_space = gymnasium.spaces.Discrete(2)
    def step(self, action):
        return numpy.zeros(2, numpy.float32), 1.0, True, False, {}
"""
RECIPE = """
environment = "mine:Wide"
algorithm = "ppo"
steps = 12288
[collector]
kind = "serial"
environments = 16
horizon = 32
[ppo]
learning_rate = 0.003
[network]
hidden = [16]
[evaluation]
episodes = 20
"""
NOTICE = "element 0 of 'action' of mine:Wide lies in [0, 50], but the policies of ppo, a2c and es begin around 0"


class ActionBoundsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "mine.py").write_text(MODULE)
        (self.folder / "mine.toml").write_text(RECIPE)
        os.environ["MENGER_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "MENGER_PYTHON")

    def train(self, run, *settings):
        return self.succeed("train", "mine.toml", "--out", run, *(word for each in settings for word in ("--set", each)))

    def mean_return(self, run):
        return float(re.search(r"return: mean (\S+),", self.succeed("evaluate", run).stdout)[1])

    def test_bounds_that_do_not_fit_are_told_with_what_to_do(self):
        short = ("steps=512", "evaluation.episodes=1")
        said = self.train("wide", *short).stderr
        self.assertEqual(said.count(NOTICE), 1, said)
        self.assertIn("transforms.scale_actions = true", said)
        for run, *settings in (("scaled", "transforms.scale_actions=true"), ("usual", "environment=mine:Usual"),
                               ("endless", "environment=mine:Endless")):  # fmt: skip
            self.assertNotIn("transforms.scale_actions", self.train(run, *short, *settings).stderr)
        checked = self.run_program("check", "mine:Wide")
        self.assertEqual((checked.returncode, checked.stdout.count(f"note: {NOTICE}")), (0, 1), checked.stdout)
        self.assertNotIn("scale_actions", self.run_program("check", "mine:Usual").stdout)

    def test_what_has_no_bounds_cannot_be_scaled(self):
        for name, *saying in (("Endless", "element 0 of the actions of mine:Endless lies in [0, inf]; transforms.scale_actions needs"),
                              ("Choices", "transforms.scale_actions = true, but the actions of mine:Choices are choices")):  # fmt: skip
            self.refuse("train", "mine.toml", "--set", f"environment=mine:{name}", "--set", "transforms.scale_actions=true", saying=saying)
        self.train("run", "steps=512")
        self.refuse("evaluate", "run", "--set", "transforms.scale_actions=true", saying=["transforms.scale_actions", "'run'"])

    def test_scaled_actions_are_learned_and_leave_with_the_policy(self):
        for algorithm, *settings in (("ppo",), ("a2c", "steps=40960", "collector.horizon=8")):
            settings = [f"algorithm={algorithm}", *settings, "transforms.scale_actions=true"]
            (self.folder / "mine.toml").write_text(RECIPE.replace("[ppo]", f"[{algorithm}]"))
            self.train(algorithm, *settings)
            self.assertGreater(self.mean_return(algorithm), -0.05)
            self.succeed("export", algorithm, "--out", "policy.menger")
            policy = menger.load(self.folder / "policy.menger")
            seen = numpy.random.default_rng(1).uniform(-1, 1, (100, 2)).astype(numpy.float32)
            actions = policy.act(seen)
            self.assertLess(numpy.abs(actions - numpy.float32([40, -2])).max(), 10)
            module = {}
            exec(MODULE, module)
            size = numpy.float32([25, 1])
            rewards = -(((actions - module["Wide"].best) / size) ** 2).sum(axis=1)
            self.assertAlmostEqual(float(rewards.mean()), self.mean_return(algorithm), delta=0.02)
            if importlib.util.find_spec("onnxruntime"):
                self.succeed("export", algorithm, "--out", "policy.onnx")
                action, _ = OnnxPolicy(self.folder / "policy.onnx").act({"observation": seen})
                numpy.testing.assert_allclose(action, actions, rtol=1e-5, atol=1e-5)
        (self.folder / "mine.toml").write_text(RECIPE)
        self.train("unscaled")
        self.assertLess(self.mean_return("unscaled"), -0.3)


if __name__ == "__main__":
    unittest.main()
