"""Several seeds of a recipe are trained side by side, each as it would be alone."""

import json
import pathlib
import shutil
import signal
import time
import unittest

from program import PATIENCE_S, ProgramTest, archive_entries, children

BROKEN = """
import gymnasium, numpy

class Broken(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.broken = seed == 8
        return numpy.zeros(2, numpy.float32), {}

    def step(self, action):
        if self.broken:
            raise ValueError("the eighth is broken")
        return numpy.zeros(2, numpy.float32), 1.0, True, False, {}
"""


class SeedsTest(ProgramTest):
    def summaries(self, parent, seeds):
        return [json.loads((self.folder / f"{parent}/seed-{seed}/summary.json").read_text()) for seed in seeds]

    def parameters(self, run):
        return archive_entries(self.folder / run / "checkpoints" / "2048")["algorithm/model/parameters"]

    def test_seeds_are_trained_and_summed_up(self):
        finished = self.succeed("train", "quick.toml", "--seeds", "3", "--seed", "7", "--out", "runs")
        rows = json.loads((self.folder / "runs" / "seeds.json").read_text())
        self.assertEqual([row["seed"] for row in rows], [7, 8, 9])
        self.assertIn("3 seeds: mean ", finished.stdout)
        means = [summary["evaluation"]["return_mean"] for summary in self.summaries("runs", (7, 8, 9))]
        self.assertEqual([row["return_mean"] for row in rows], means)
        self.assertIn(f"minimum {min(means):.1f}, maximum {max(means):.1f}", finished.stdout)
        for seed in (7, 8, 9):
            self.assertIn(f"seed {seed}: completed after 2048 steps", finished.stdout)
            self.assertIn(f"run folder: runs/seed-{seed}\n", finished.stdout)

    def test_each_learns_what_it_learns_alone(self):
        self.succeed("train", "quick.toml", "--seeds", "2", "--side-by-side", "2", "--seed", "7", "--out", "together")
        self.succeed("train", "quick.toml", "--seed", "8", "--out", "alone")
        self.assertEqual(self.parameters("together/seed-8"), self.parameters("alone"))
        self.assertNotEqual(self.parameters("together/seed-8"), self.parameters("together/seed-7"))

    def test_options_of_the_command_line_are_for_each(self):
        self.succeed("train", "quick.toml", "--seeds", "2", "--set", "ppo.clip=0.1", "--set", "seed=4", "--out", "runs")
        for seed in (4, 5):
            text = (self.folder / f"runs/seed-{seed}/experiment.toml").read_text()
            self.assertIn("\nclip = 0.1  # from --set\n", text)
            self.assertIn(f"\nseed = {seed}  # from --seed\n", text)

    def start_long(self, *more):
        """Seeds that go on for longer than any test, once the first of them has been saved."""
        process = self.start("train", "quick.toml", "--seed", "7", "--out", "runs", "--set", "evaluation.every=0",
                             "--set", "steps=1000000000", *more)
        self.wait_for_checkpoint(process, "runs/seed-7")
        return process

    def test_an_interrupt_saves_those_that_are_trained(self):
        process = self.start_long("--seeds", "3", "--side-by-side", "2")
        self.wait_for_checkpoint(process, "runs/seed-8")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
        self.assertEqual([summary["status"] for summary in self.summaries("runs", (7, 8))], ["interrupted"] * 2)
        self.assertIn("train --resume runs/seed-8\n", output)
        self.assertFalse((self.folder / "runs" / "seed-9").exists())
        self.assertFalse((self.folder / "runs" / "seeds.json").exists())
        self.refuse("evaluate", "runs", saying=["there are runs in it: runs/seed-7, runs/seed-8"])
        self.assertIn("train --resume runs\n", output)
        steps = self.summaries("runs", [8])[0]["steps"]
        self.succeed("train", "--resume", "runs/seed-8", "--set", f"steps={steps + 256}")
        # All of them, with the one that had not begun.
        finished = self.succeed("train", "--resume", "runs/", "--set", f"steps={steps + 512}", "--side-by-side", "2")
        self.assertIn("3 seeds: mean ", finished.stdout)
        self.assertEqual([summary["status"] for summary in self.summaries("runs", (7, 8, 9))], ["completed"] * 3)
        self.assertEqual([row["seed"] for row in json.loads((self.folder / "runs" / "seeds.json").read_text())], [7, 8, 9])

    def test_a_seed_that_had_not_begun_learns_what_it_had_been_asked_to(self):
        self.succeed("train", "quick.toml", "--seeds", "2", "--seed", "7", "--out", "runs", "--set", "ppo.clip=0.1")
        before = self.parameters("runs/seed-8")
        shutil.rmtree(self.folder / "runs" / "seed-8")  # As if it had not begun.
        (self.folder / "quick.toml").unlink()
        finished = self.succeed("train", "--resume", "runs")
        self.assertEqual(self.parameters("runs/seed-8"), before)
        self.assertIn("2 seeds: mean ", finished.stdout)

    def test_seeds_that_cannot_go_on_together_are_named(self):
        self.succeed("train", "quick.toml", "--seeds", "2", "--seed", "7", "--out", "runs")
        self.refuse("train", "quick.toml", "--seeds", "2", "--seed", "8", "--out", "runs", code=1,
                    saying=["'runs/seed-8' already holds a run"])  # fmt: skip
        self.refuse("train", "--resume", "runs", "--seed", "7", saying=["--seed 7", "runs of several seeds"])
        self.refuse("train", "--resume", "runs", "--seeds", "2", saying=["--resume", "--seeds"])
        shutil.rmtree(self.folder / "runs/seed-8/checkpoints")
        self.refuse("train", "--resume", "runs", code=1, saying=["'runs/seed-8' has no checkpoint", "seed 8 begins anew"])
        (self.folder / "runs" / "seeds_plan.json").write_text("{}")
        self.refuse("train", "--resume", "runs", code=1, saying=["runs/seeds_plan.json", "--seeds"])

    def test_they_end_with_the_program(self):
        process = self.start_long("--seeds", "2", "--side-by-side", "2")
        trained = children(process.pid)
        self.assertEqual(len(trained), 2)
        process.kill()
        deadline = time.monotonic() + PATIENCE_S
        while any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in trained):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_a_recipe_that_is_changed_meanwhile_was_read_once(self):
        process = self.start("train", "quick.toml", "--seeds", "2", "--side-by-side", "1", "--seed", "7", "--out", "runs",
                             "--set", "steps=100000", "--set", "evaluation.every=0", "--set", "checkpoint.every=20000")
        self.wait_for_checkpoint(process, "runs/seed-7")
        (self.folder / "quick.toml").write_text("nothing that could be read")
        self.assertFalse((self.folder / "runs" / "seed-8").exists(), "changed too late to tell")
        output, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("2 seeds: mean ", output)

    def test_others_go_on_where_one_fails(self):
        (self.folder / "broken.py").write_text(BROKEN)
        (self.folder / "own.toml").write_text("environment = 'broken:Broken'\nalgorithm = 'ppo'\nsteps = 512\n")
        finished = self.run_program("train", "own.toml", "--seeds", "3", "--seed", "7", "--out", "runs",
                                    "--set", "collector.environments=1")
        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertIn("environment 0 (seed 8), step 0: ValueError: the eighth is broken", finished.stderr)
        self.assertIn("menger: error: not trained to the end: seed 8 ended with exit status 1", finished.stderr)
        self.assertEqual([summary["status"] for summary in self.summaries("runs", (7, 9))], ["completed"] * 2)

    def test_what_no_seed_can_do_is_refused(self):
        self.refuse("train", "quick.toml", "--side-by-side", "2", saying=["--side-by-side", "--seeds"])
        self.refuse("train", "quick.toml", "--seeds", "2", "--set", "ppo.clip=-1", "--out", "runs", saying=["ppo.clip = -1"])
        self.assertFalse((self.folder / "runs").exists())
        self.refuse("train", "quick.toml", "--seeds", "2", "--init-from", "nowhere", "--out", "runs", saying=["seed 2"])
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    unittest.main()
