"""A run that fails says at which step, keeps what is good, and says how to go on."""

import shutil
import unittest

from program import ProgramTest, archive_entries, newest_checkpoint

TOO_FAST = ("--set", "ppo.learning_rate=1e30", "--set", "optimiser.max_gradient_norm=0")


class RecoveryTest(ProgramTest):
    def test_a_diverged_run_goes_on_from_its_checkpoint_with_another_learning_rate(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.refuse("train", "--resume", "run", "--set", "steps=4096", *TOO_FAST, code=None,
                    saying=["after 2048 steps", "not finite", "`menger train --resume run` goes on from 2048 steps",
                            "--set ppo.learning_rate="])
        self.assertEqual(newest_checkpoint(self.folder / "run"), 2048)
        resumed = self.succeed("train", "--resume", "run", "--set", "ppo.learning_rate=1e-3")
        self.assertIn("at 2048 of 4096 steps", resumed.stderr)
        self.assertEqual(newest_checkpoint(self.folder / "run"), 4096)

    def test_a_policy_whose_actions_are_refused_does_not_replace_the_last_good_checkpoint(self):
        pendulum = ("quick.toml", "--set", "environment=Pendulum-v1", "--set", "evaluation.every=0")
        self.succeed("train", *pendulum, "--out", "run")
        before = archive_entries(self.folder / "run" / "checkpoints" / "2048")
        self.refuse("train", "--resume", "run", "--set", "steps=4096", "--set", "ppo.epochs=1",
                    "--set", "ppo.minibatch_size=128", *TOO_FAST, code=None,
                    saying=["after 21", "`menger train --resume run` goes on from 2048 steps"])
        self.assertEqual(before, archive_entries(self.folder / "run" / "checkpoints" / "2048"))

    def test_a_run_that_diverges_before_its_first_checkpoint_says_so(self):
        self.refuse("train", "quick.toml", "--set", "checkpoint.every=0", "--set", "evaluation.every=0", *TOO_FAST,
                    "--out", "run", code=None, saying=["no checkpoint yet (checkpoint.every = 0)", "learning_rate"])

    def test_checkpoints_come_by_time_where_no_steps_say_when(self):
        by_time = ("quick.toml", "--set", "steps=1000000000", "--set", "evaluation.every=0", "--set", "checkpoint.every=0")
        process = self.start("train", *by_time, "--set", "checkpoint.seconds=0.01", "--out", "run")
        self.wait_for_checkpoint(process, "run")
        process.kill()
        process.communicate()
        saved = newest_checkpoint(self.folder / "run")
        resumed = self.succeed("train", "--resume", "run", "--set", f"steps={saved + 256}")
        self.assertIn(f"at {saved} of {saved + 256} steps", resumed.stderr)
        self.assertRegex(self.succeed("describe", "checkpoint").stdout, r"\n  checkpoint.seconds +60 ")

    def test_a_checkpoint_that_was_being_replaced_is_resumed_from_its_previous_name(self):
        self.succeed("train", "quick.toml", "--out", "run")
        shutil.copytree(self.folder / "run", self.folder / "straight")
        for name in ("2048", "best"):
            checkpoint = self.folder / "run" / "checkpoints" / name
            checkpoint.rename(checkpoint.with_name(name + ".previous"))
        self.succeed("evaluate", "run", "--checkpoint", "best", "--episodes", 1)
        self.succeed("evaluate", "run", "--checkpoint", "2048", "--episodes", 1)
        for run in ("run", "straight"):
            self.succeed("train", "--resume", run, "--set", "steps=4096")
        first, second = (archive_entries(self.folder / run / "checkpoints" / "4096") for run in ("run", "straight"))
        for name in first.keys() - {"loop/counters"}:
            self.assertEqual(first[name], second[name], name)
        self.assertFalse((self.folder / "run" / "checkpoints" / "2048.previous").exists())  # Pruned in its turn.


if __name__ == "__main__":
    unittest.main(verbosity=2)
