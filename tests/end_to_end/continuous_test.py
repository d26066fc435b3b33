"""SAC and TD3 from recipe to exported policy."""

import shutil
import unittest

from exporting import OnnxPolicy, assert_alike, menger
from program import ProgramTest, archive_entries

# A second of either: everything happens, nothing is learned.
SHORT = """
environment = "Pendulum-v1"
algorithm = "{}"
steps = 600
[network]
hidden = [16, 16]
[replay]
min_size = 100
batch_size = 32
training_intensity = 32
{}
[checkpoint]
every = 300
[evaluation]
episodes = 2
"""
PRIORITISED = 'sampler = "prioritised"\nstratified = true'
RESUMED = [
    ("sac", "", ("--set", "sac.learning_rate_schedule=cosine")),
    ("td3", "", ("--set", "transforms.apply=normalise_observation")),
    ("sac", PRIORITISED, ("--set", "sac.n_step=3")),
]


class ContinuousTest(ProgramTest):
    def write(self, algorithm, replay=""):
        (self.folder / "short.toml").write_text(SHORT.format(algorithm, replay))

    def test_a_resumed_run_is_the_same_bit_for_bit(self):
        for algorithm, replay, settings in RESUMED:
            with self.subTest(algorithm=algorithm, replay=replay):
                self.write(algorithm, replay)
                self.succeed("train", "short.toml", *settings, "--out", "run")
                straight = archive_entries(self.folder / "run/checkpoints/600")
                shutil.rmtree(self.folder / "run/checkpoints/600")
                shutil.rmtree(self.folder / "run/checkpoints/best")
                self.succeed("train", "--resume", "run")
                resumed = archive_entries(self.folder / "run/checkpoints/600")
                for name in straight.keys() - {"loop/counters"}:
                    self.assertEqual(straight[name], resumed[name], name)
                shutil.rmtree(self.folder / "run")

    def test_any_number_of_threads_learns_the_same(self):
        self.write("sac")
        for threads in (1, 2):
            self.succeed("train", "short.toml", "--set", f"learner_threads={threads}", "--out", f"threads-{threads}")
        one, two = (archive_entries(self.folder / f"threads-{threads}/checkpoints/600") for threads in (1, 2))
        self.assertEqual(one["algorithm/parameters"], two["algorithm/parameters"])

    def test_the_exported_policy_acts_within_the_bounds(self):
        for algorithm in ("sac", "td3"):
            self.write(algorithm)
            self.succeed("train", "short.toml", "--set", "transforms.apply=normalise_observation", "--out", algorithm)
            self.succeed("export", algorithm, "--format", "bundle")
            self.succeed("export", algorithm, "--format", "onnx")
            policy = menger.load(self.folder / algorithm / "policy.menger")
            assert_alike(self, policy, OnnxPolicy(self.folder / algorithm / "policy.onnx"), steps=3, rows=1000)
            self.succeed("rollout", "Pendulum-v1", "--policy", algorithm, "--steps", "50", "--out", "trace.csv")
            rows = [line.split(",") for line in (self.folder / "trace.csv").read_text().splitlines()]
            shown = [float(cell) for cell in rows[1][-3:]]
            for row in rows[2:]:
                self.assertAlmostEqual(float(policy.act(shown)[0]), float(row[1]), places=4)
                self.assertLessEqual(abs(float(row[1])), 2)
                shown = [float(cell) for cell in row[-3:]]

    def test_what_does_not_fit_is_refused(self):
        for algorithm in ("sac", "td3"):
            self.write(algorithm)
            self.refuse("train", "short.toml", "--set", "environment=CartPole-v1", saying=["CartPole-v1", "not real numbers", "dqn"])
            self.refuse("train", "short.toml", "--set", "network.kind=lstm", code=None, saying=["lstm", "mlp"])
            self.refuse("train", "short.toml", "--set", "transforms.apply=normalise_reward", saying=["normalise_reward"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
