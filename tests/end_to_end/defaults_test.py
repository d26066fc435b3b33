"""A recipe of two lines: what it becomes, and that nothing but the seed decides what is learned."""

import re
import subprocess
import sys
import unittest

from program import ProgramTest, archive_entries, newest_checkpoint


class DefaultsTest(ProgramTest):
    def train(self, out, *more, environment="CartPole-v1", algorithm="ppo", steps=20_000):
        """The run folder of a recipe of two lines."""
        (self.folder / "two_lines.toml").write_text(f'environment = "{environment}"\nalgorithm = "{algorithm}"\n')
        settings = (f"steps={steps}", "evaluation.episodes=1", *more)
        self.succeed("train", "two_lines.toml", "--out", out, *(word for each in settings for word in ("--set", each)))
        return self.folder / out

    def learned(self, run):
        entries = archive_entries(run / "checkpoints" / str(newest_checkpoint(run)))
        return {name: value for name, value in entries.items() if name.startswith(("algorithm/", "update_rule/"))}

    def option(self, run, name):
        return re.search(rf"^{name} = (.*)$", (run / "experiment.toml").read_text(), re.MULTILINE)[1]

    def test_five_starts_beside_a_busy_program_learn_the_same(self):
        burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(burner.wait)
        self.addCleanup(burner.kill)
        for algorithm, steps in (("ppo", 3_000), ("a2c", 2_000), ("dqn", 1_000)):
            first = self.learned(self.train(f"{algorithm}-0", algorithm=algorithm, steps=steps))
            self.assertGreater(len(first), 2)
            for start in range(1, 5):
                self.assertEqual(first, self.learned(self.train(f"{algorithm}-{start}", algorithm=algorithm, steps=steps)))

    def test_the_number_of_workers_changes_nothing(self):
        one = self.learned(self.train("one", "collector.workers=1"))
        self.assertEqual(one, self.learned(self.train("two", "collector.workers=2")))
        self.assertFalse(one == self.learned(self.train("three", "seed=3")))

    def test_a_run_takes_as_many_steps_as_it_says(self):
        for algorithm, steps in (("ppo", 5_000), ("a2c", 1_003), ("dqn", 777), ("ppo", 9), ("ppo", 1)):
            run = self.train(f"{algorithm}-{steps}", algorithm=algorithm, steps=steps)
            environments = int(self.option(run, "environments").split()[0])
            self.assertIn(newest_checkpoint(run), range(steps, steps + environments))

    def test_the_resolved_recipe_says_where_values_come_from(self):
        run = self.train("run", "ppo.discount=0.9")
        text = (run / "experiment.toml").read_text()
        for line in ('environment = "CartPole-v1"  # from the recipe', "discount = 0.9  # from --set",
                     "horizon = 64  # from the defaults of ppo for it"):
            self.assertIn(f"\n{line}\n", text)
        self.assertRegex(text, r'\nworkers = \d+  # from what fits this machine\n')
        self.assertRegex(text, r"\nclip = 0.2\n")  # As `menger describe ppo` has it.
        self.succeed("train", "--resume", "run", "--set", "steps=20008")
        resumed = (run / "experiment.toml").read_text()
        self.assertEqual(text.replace("steps = 20000  # from --set", "steps = 20008  # from --set"), resumed)

    def test_tuned_recipes_are_named(self):
        for environment, algorithm, first in (("CartPole-v1", "dqn", "cartpole_dqn"), ("LunarLander-v3", "ppo", "lunarlander_ppo")):
            (self.folder / "mine.toml").write_text(f'environment = "{environment}"\nalgorithm = "{algorithm}"\n')
            told = self.succeed("train", "mine.toml", "--set", "steps=8", "--set", "evaluation.episodes=1").stderr
            self.assertRegex(told, f"tuned recipes for {environment} are there, too: .*{first}, ")
        self.assertNotIn("tuned", self.succeed("train", "cartpole_ppo", "--set", "steps=8", "--set", "evaluation.episodes=1").stderr)

    def test_a_short_run_has_short_slabs(self):
        for steps, horizon in ((1_000_000, 256), (40_960, 256), (40_000, 128), (20_000, 64), (1_000, 4), (100, 1)):
            run = self.train(f"run-{steps}", "collector.kind=serial", "ppo.learning_rate=0", "evaluation.stop_at_return=-inf",
                             "evaluation.every=1", steps=steps)  # So it ends after two slabs.
            self.assertEqual(int(self.option(run, "horizon").split()[0]), horizon)


if __name__ == "__main__":
    unittest.main()
