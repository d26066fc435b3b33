"""A Dict of an image and of numbers beside it: two lines train on both, and what was trained is evaluated, resumed and exported."""

import importlib.util
import json
import os
import sys
import unittest

import numpy

from exporting import BUILD, OnnxPolicy, assert_alike, menger
from program import ProgramTest

MODULE = """
import gymnasium, numpy
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

class Crossing(gymnasium.Env):
    '''One step: a camera shows a side, a speed whether it is fast; of four actions one is worth 1. A fifth is never allowed.'''
    observation_space = Dict({"gear": Discrete(3), "camera": Box(0, 255, (36, 36, 1), numpy.uint8), "lamps": MultiBinary(2),
                              "speed": Box(-numpy.inf, numpy.inf, (2,), numpy.float64), "action_mask": MultiBinary(5)})
    action_space = Discrete(5)

    def show(self):
        self.right, self.fast = (int(self.np_random.integers(2)) for _ in range(2))
        camera = numpy.zeros((36, 36, 1), numpy.uint8)
        camera[4:32, 18 * self.right:18 + 18 * self.right] = 255
        return {"gear": int(self.np_random.integers(3)), "camera": camera, "lamps": numpy.array([1, self.right ^ self.fast], numpy.int8),
                "speed": numpy.array([2.0 * self.fast - 1, 0.5]), "action_mask": numpy.array([1, 1, 1, 1, 0], numpy.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.show(), {}

    def step(self, action):
        assert action != 4, "not allowed"
        reward = float(action == 2 * self.right + self.fast)
        return self.show(), reward, True, False, {}
"""

LEARNED = 0.95  # Of at most 1; who reads one part alone gets 0.5.
# Two lines are the recipe; a run of seconds wants larger steps than one of hours.
QUICK = ("ppo.learning_rate=1e-3", "ppo.minibatch_size=64", "evaluation.episodes=40")


@unittest.skipUnless((BUILD / "libmenger_torch.so").exists(), "convolutions with numbers beside them need libmenger_torch.so")
class ImageAndVectorTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "streets.py").write_text(MODULE)
        os.environ["MENGER_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "MENGER_PYTHON")

    def train(self, algorithm, settings, run="run"):
        (self.folder / "recipe.toml").write_text(f'environment = "streets:Crossing"\nalgorithm = "{algorithm}"\n')
        settings = ("learner_threads=1", "collector.kind=serial", "evaluation.every=0", *settings)  # Where others compute, too.
        self.succeed("train", "recipe.toml", "--out", run, *(word for each in settings for word in ("--set", each)))
        return json.loads((self.folder / run / "summary.json").read_text())["evaluation"]["return_mean"]

    def test_what_becomes_of_each_leaf_is_said(self):
        for command in ("check", "describe"):
            said = self.succeed(command, "streets:Crossing").stdout
            for text in ("observation/camera (1, 36, 36) of uint8: an image [channels, height, width], read as stacked frames by convolutions",
                         "observation/gear () of int64: 1 code, read as 3 numbers of which one each is 1, beside the image",
                         "observation/lamps (2,) of uint8: 2 flags, read as numbers, beside the image",
                         "observation/speed (2,) of float64: 2 numbers, beside the image",
                         "action_mask (5,) of uint8: says which actions are allowed",
                         "network of a recipe of two lines: nature_cnn"):  # fmt: skip
                self.assertIn(text, said)

    def test_ppo_learns_from_both_and_the_exports_act_as_it_does(self):
        self.assertGreaterEqual(self.train("ppo", ("steps=8192", *QUICK)), LEARNED)
        resolved = (self.folder / "run" / "experiment.toml").read_text()
        self.assertIn('kind = "nature_cnn"', resolved)
        self.assertIn('apply = ["normalise_observation", "clip_reward"]', resolved)
        evaluated = self.succeed("evaluate", "run", "--episodes", 40).stdout
        self.assertIn("mean 1", evaluated)
        for form in ("bundle", "onnx"):
            self.succeed("export", "run", "--format", form)
        policy = menger.load(self.folder / "run" / "policy.menger")
        self.assertEqual([leaf.name for leaf in policy.observation][0], "observation/camera")
        sys.path.insert(0, str(self.folder))
        self.addCleanup(sys.path.remove, str(self.folder))
        environment = __import__("streets").Crossing()
        rewards = []
        for seed in range(40):
            observation, _ = environment.reset(seed=seed)
            policy.reset()
            rewards.append(environment.step(policy.act(observation))[1])
        self.assertGreaterEqual(numpy.mean(rewards), LEARNED)
        if importlib.util.find_spec("onnxruntime") is not None:
            assert_alike(self, policy, OnnxPolicy(self.folder / "run" / "policy.onnx"), steps=6, rows=10)

    def test_dqn_keeps_both_in_replay_and_is_resumed(self):
        settings = ("steps=300", "evaluation.episodes=2", "replay.min_size=100",
                    "network.kind=a3c_cnn", "replay.training_intensity=8", "checkpoint.every=300")  # fmt: skip
        self.train("dqn", settings)
        self.succeed("train", "--resume", "run", "--set", "steps=600")
        self.assertEqual((self.folder / "run" / "progress.csv").read_text().splitlines()[-1].split(",")[0], "600")

    def test_a2c_trains_and_a_memory_of_pixels_does(self):
        settings = ("steps=512", "evaluation.episodes=2")
        self.train("a2c", settings)
        self.train("ppo", (*settings, "network.kind=a3c_cnn_lstm", "network.lstm_size=16", "transforms.frame_stack=1"), run="memory")
        self.succeed("evaluate", "memory", "--episodes", 2)
        for form in ("bundle", "onnx"):
            self.succeed("export", "memory", "--format", form)
        policy = menger.load(self.folder / "memory" / "policy.menger")
        self.assertTrue(policy.has_memory)
        if importlib.util.find_spec("onnxruntime") is not None:
            assert_alike(self, policy, OnnxPolicy(self.folder / "memory" / "policy.onnx"), steps=6, rows=10)

    def test_two_images_are_refused_by_convolutions_with_what_reads_them(self):
        (self.folder / "eyes.py").write_text(MODULE.replace('"gear": Discrete(3)', '"gear": Box(0, 255, (40, 40, 3), numpy.uint8)').replace(
            '"gear": int(self.np_random.integers(3))', '"gear": numpy.zeros((40, 40, 3), numpy.uint8)'))  # fmt: skip
        (self.folder / "eyes.toml").write_text('environment = "eyes:Crossing"\nalgorithm = "ppo"\n')
        refused = self.run_program("train", "eyes.toml", "--set", "network.kind=nature_cnn", "--set", "steps=64")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('network.kind = "mlp" reads all of them', refused.stderr)


if __name__ == "__main__":
    unittest.main()
