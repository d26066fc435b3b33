"""Every recipe of the program is whole: it can be described, its run begins, and what it trains can be exported."""

import unittest

from exporting import OnnxPolicy, assert_alike, menger
from program import ProgramTest


class RecipesTest(ProgramTest):
    def test_every_recipe_can_be_described_and_begun(self):
        for recipe in self.succeed("list", "recipes", "--names").stdout.split():
            described = self.succeed("describe", recipe).stdout
            settings = ["steps=1", "evaluation.episodes=1"]
            if "collector.horizon" in described:
                settings.append("collector.horizon=4")
            if "ppo.minibatch_size" in described:
                settings.append("ppo.minibatch_size=16")
            if "atari.frame_limit" in described:
                settings.append("atari.frame_limit=60")  # Who has learned nothing may play for half an hour.
            begun = self.run_program("train", recipe, *(word for setting in settings for word in ("--set", setting)), "--out", recipe)
            # What was not built is said, with how to get it.
            missing = "needs the torch library" in begun.stderr or "run `make atari`" in begun.stderr or "`make mujoco`" in begun.stderr
            self.assertTrue(begun.returncode == 0 or missing, f"{recipe}: {begun.stderr}")
            if begun.returncode == 0:
                self.check_export(recipe)

    def check_export(self, run):
        """Both forms of the policy do the same."""
        self.succeed("export", run, "--format", "bundle")
        self.succeed("export", run, "--format", "onnx")
        policy = menger.load(self.folder / run / "policy.menger")
        onnx = OnnxPolicy(self.folder / run / "policy.onnx")
        pixels = any(len(leaf.shape) == 3 for leaf in policy.observation)
        assert_alike(self, policy, onnx, steps=3, rows=4 if pixels else 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
