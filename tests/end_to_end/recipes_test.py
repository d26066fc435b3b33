"""Every recipe of the program is whole: it can be described, and its run begins."""

import unittest

from program import ProgramTest


class RecipesTest(ProgramTest):
    def test_every_recipe_can_be_described_and_begun(self):
        for recipe in self.succeed("list", "recipes", "--names").stdout.split():
            described = self.succeed("describe", recipe).stdout
            settings = ["steps=1", "evaluation.episodes=1"]
            if "collector.horizon" in described:
                settings.append("collector.horizon=4")
            if "atari.frame_limit" in described:
                settings.append("atari.frame_limit=60")  # Who has learned nothing may play for half an hour.
            begun = self.run_program("train", recipe, *(word for setting in settings for word in ("--set", setting)))
            # What was not built is said, with how to get it.
            missing = "needs the torch library" in begun.stderr or "run `make atari`" in begun.stderr or "`make mujoco`" in begun.stderr
            self.assertTrue(begun.returncode == 0 or missing, f"{recipe}: {begun.stderr}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
