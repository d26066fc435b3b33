"""Training on Gymnasium's own CartPole, which a Python host steps, is training on the native one."""

import importlib.util
import json
import sys
import unittest

from program import ProgramTest, rows_without_time

# A second natively: enough for a policy that keeps the pole up.
RECIPE = """
environment = "CartPole-v1"
algorithm = "ppo"
steps = 40960
seed = 5
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 8
horizon = 128
[ppo]
learning_rate = 1e-3
epochs = 10
minibatch_size = 256
[evaluation]
every = 20480
episodes = 10
[progress]
every = 2048
"""
LEARNED = 150  # A random policy's return is 22.


class HostTrainingTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "cartpole.toml").write_text(RECIPE)

    def train(self, environment, name):
        """The learning curve and the returns of the last evaluation."""
        settings = [f"environment={environment}", f"host.python={sys.executable}"] if "host:" in environment else []
        self.succeed("train", "cartpole.toml", "--out", name, *(word for setting in settings for word in ("--set", setting)))
        summary = json.loads((self.folder / name / "summary.json").read_text())
        return rows_without_time(self.folder / name), summary["evaluation"]

    def test_the_whole_learning_curve_is_the_native_ones_bit_for_bit(self):
        native, native_returns = self.train("CartPole-v1", "native")
        hosted, hosted_returns = self.train("host:CartPole-v1", "hosted")
        self.assertGreaterEqual(len(native), 20)
        self.assertEqual(native, hosted)
        self.assertEqual(native_returns, hosted_returns)
        self.assertGreaterEqual(native_returns["return_mean"], LEARNED)


if __name__ == "__main__":
    unittest.main(verbosity=2)
