"""Learning curves of runs: which belong together, what a band is, and that the pictures are made."""

import importlib.util
import sys
import unittest

import numpy

from program import ROOT, ProgramTest

sys.path.insert(0, str(ROOT / "python"))
from menger import plot  # noqa: E402


class PlotTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest(f"{sys.executable} lacks matplotlib: tools/setup.sh python plot")

    def draw(self, *arguments):
        return self.succeed("plot", *arguments, env={"MENGER_PYTHON": sys.executable, "HOME": str(self.folder)}).stdout

    def test_seeds_are_one_curve_and_other_settings_another(self):
        self.succeed("train", "quick.toml", "--seeds", "3", "--out", "three")
        self.succeed("train", "quick.toml", "--set", "ppo.clip=0.1", "--out", "clipped")
        self.succeed("train", "quick.toml", "--seed", "9", "--out", "alone")
        printed = self.draw("three", "clipped", "alone", "--out", "curves.svg")
        self.assertIn("curves.svg: episode_return_mean of three/seed-2 and 3 more (4 seeds), clipped\n", printed)
        picture = (self.folder / "curves.svg").read_text()
        for text in ("(4 seeds)", "clipped", "episode return mean", "steps", "seconds of training"):
            self.assertIn(text, picture)
        self.assertIn("three (3 seeds)", self.draw("three", "--out", "three.png", "--metric", "evaluation_return_mean"))
        self.assertEqual((self.folder / "three.png").read_bytes()[:4], b"\x89PNG")

    def test_a_run_that_goes_on_can_be_drawn_and_the_same_runs_give_the_same_file(self):
        self.succeed("train", "quick.toml", "--out", "run")
        table = self.folder / "run" / "progress.csv"
        table.write_text(table.read_text() + "9999,0.5")  # Half a row.
        self.draw("run", "--out", "one.svg")
        self.draw("run", "--out", "two.svg")
        self.assertEqual((self.folder / "one.svg").read_bytes(), (self.folder / "two.svg").read_bytes())

    def test_a_band_is_what_interpolation_point_by_point_gives(self):
        curves = [([0, 10, 30], [0, 10, 10]), ([5, 20, 25], [2, 5, 0])]
        x, mean, low, high = plot.band(curves)
        self.assertEqual((x[0], x[-1]), (5, 25))
        for at, middle, least, most in zip(x, mean, low, high):
            first = at if at < 10 else 10
            second = 2 + (at - 5) / 5 if at < 20 else 5 - (at - 20)
            numpy.testing.assert_allclose([middle, least, most], [(first + second) / 2, min(first, second), max(first, second)])
        x, mean, low, high = plot.band(curves[:1])
        self.assertEqual((list(x), list(mean), list(low)), ([0, 10, 30], [0, 10, 10], [0, 10, 10]))

    def test_one_evaluation_each_is_a_point_with_a_bar(self):
        self.succeed("train", "quick.toml", "--seeds", "2", "--out", "two", "--set", "evaluation.every=0")
        self.assertIn("two (2 seeds)", self.draw("two", "--out", "two.svg", "--metric", "evaluation_return_mean"))
        x, mean, low, high = plot.band([([20], [4.0]), ([20], [6.0])])
        self.assertEqual([list(values) for values in (x, mean, low, high)], [[20], [5], [4], [6]])

    def test_runs_without_values_are_left_out_and_named(self):
        self.succeed("train", "quick.toml", "--seeds", "2", "--out", "three")
        table = self.folder / "three" / "seed-3" / "progress.csv"
        table.write_text(table.read_text().splitlines()[0] + "\n")
        environment = {"MENGER_PYTHON": sys.executable, "HOME": str(self.folder)}
        done = self.succeed("plot", "three/seed-2", "three/seed-3", "--out", "a.svg", env=environment)
        self.assertEqual(done.stderr, "menger: warning: 'three/seed-3/progress.csv' has no value of 'episode_return_mean'; it is left "
                                      "out\n")  # fmt: skip
        self.assertEqual(done.stdout, "a.svg: episode_return_mean of seed-2\n")
        (self.folder / "three" / "seed-3" / "summary.json").unlink()
        self.refuse("plot", "three/seed-3", "--out", "a.svg", saying=["has no value of 'episode_return_mean' yet"], env=environment)

    def test_seconds_are_those_in_which_the_seeds_on_the_average_made_the_steps(self):
        slow, fast = ({"steps": [0, 10], "training_seconds": [8, 12]}, []), ({"steps": [0, 20], "training_seconds": [1, 5]}, [])
        self.assertEqual(list(plot.times([slow, fast], [0, 5, 10])), [4.5, 6, 7.5])

    def test_what_cannot_be_drawn_is_refused(self):
        environment = {"MENGER_PYTHON": sys.executable, "HOME": str(self.folder)}
        (self.folder / "empty").mkdir()
        self.refuse("plot", "nowhere", "--out", "a.png", saying=["no folder 'nowhere'", "menger runs"], env=environment)
        self.refuse("plot", "empty", "--out", "a.png", saying=["'empty' is not a run folder and holds none"], env=environment)
        self.succeed("train", "quick.toml", "--out", "run")
        self.refuse("plot", "run", "--out", "a.pdf", saying=["'a.pdf' must end with .png or .svg"], env=environment)
        self.refuse("plot", "run", "--out", "a.png", "--metric", "luck", saying=["no column 'luck'", "policy_loss"],
                    env=environment)  # fmt: skip
        self.refuse("plot", "run", "--out", "nowhere/a.png", saying=["nowhere/a.png"], code=1, env=environment)


if __name__ == "__main__":
    unittest.main(verbosity=2)
