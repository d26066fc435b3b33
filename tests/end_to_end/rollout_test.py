"""A trace of `menger rollout` equals what Gymnasium does with the same seed and actions."""

import csv
import unittest

import gymnasium
import numpy as np

from program import ProgramTest

DISCRETE = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")
CONTINUOUS = ("MountainCarContinuous-v0", "Pendulum-v1")
STEPS = 1100  # Beyond the longest time limit, 999.


def read_trace(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def numbers(row, prefix):
    return [row[key] for key in row if key.startswith(prefix)]


class RolloutTest(ProgramTest):
    def compare(self, name, seed):
        """Random actions of ours, replayed in Gymnasium; a later reset goes on with the environment's stream."""
        self.succeed("rollout", name, "--seed", seed, "--steps", STEPS, "--out", "trace.csv")
        rows = read_trace(self.folder / "trace.csv")
        environment = gymnasium.make(name)
        observation, _ = environment.reset(seed=seed)
        steps = 0
        for index, row in enumerate(rows):
            place = f"{name}, seed {seed}, line {index + 2}"
            reward, terminated, truncated = 0.0, False, False
            if numbers(row, "action_")[0] == "":
                if index > 0:
                    observation, _ = environment.reset()
            else:
                steps += 1
                values = numbers(row, "action_")
                action = int(values[0]) if name in DISCRETE else np.array(values, np.float32)
                observation, reward, terminated, truncated, _ = environment.step(action)
            self.assertEqual(int(row["step"]), steps, place)
            self.assertEqual(float(row["reward"]), float(reward), place)
            self.assertEqual((row["terminated"], row["truncated"]), (str(int(terminated)), str(int(truncated))), place)
            ours = np.array(numbers(row, "observation_"), np.float32)
            np.testing.assert_array_equal(ours, np.asarray(observation, np.float32), err_msg=place)
        self.assertEqual(steps, STEPS)
        self.assertGreater(len(rows), STEPS + 1, "the trace should hold a reset")

    def test_discrete_environments_equal_gymnasium_over_several_episodes(self):
        for name in DISCRETE:
            self.compare(name, seed=3)

    def test_continuous_environments_equal_gymnasium_over_several_episodes(self):
        for name in CONTINUOUS:
            self.compare(name, seed=4)

    def test_a_trace_played_back_gives_the_same_trace(self):
        self.succeed("rollout", "LunarLander-v3", "--seed", 5, "--steps", 300, "--out", "first.csv")
        self.succeed("rollout", "LunarLander-v3", "--seed", 5, "--policy", "first.csv", "--out", "second.csv")
        self.assertEqual((self.folder / "first.csv").read_text(), (self.folder / "second.csv").read_text())

    def test_a_trace_has_the_actions_that_the_environment_was_given(self):
        self.succeed("train", "quick.toml", "--set", "environment=MountainCarContinuous-v0", "--set", "ppo.initial_log_std=1",
                     "--set", "ppo.learning_rate=1", "--out", "run")
        self.succeed("rollout", "MountainCarContinuous-v0", "--policy", "run", "--seed", 5, "--steps", 300, "--out", "first.csv")
        actions = [float(row["action_0"]) for row in read_trace(self.folder / "first.csv") if row["action_0"]]
        self.assertLessEqual(max(map(abs, actions)), 1)
        self.succeed("rollout", "MountainCarContinuous-v0", "--seed", 5, "--policy", "first.csv", "--out", "second.csv")
        self.assertEqual((self.folder / "first.csv").read_text(), (self.folder / "second.csv").read_text())

    def test_a_trace_can_go_to_standard_output(self):
        self.succeed("rollout", "Pendulum-v1", "--seed", 5, "--steps", 3, "--out", "trace.csv")
        piped = self.succeed("rollout", "Pendulum-v1", "--seed", 5, "--steps", 3, "--out", "-")
        self.assertEqual(piped.stdout, (self.folder / "trace.csv").read_text())

    def test_the_actions_of_a_recorded_gymnasium_episode_give_its_observations(self):
        environment = gymnasium.make("CartPole-v1")
        observation, _ = environment.reset(seed=42)
        actions = [1, 1, 0, 1, 0, 0, 0]
        expected = [observation] + [environment.step(action)[0] for action in actions]
        (self.folder / "actions.csv").write_text("action_0\n" + "\n".join(map(str, actions)) + "\n")
        self.succeed("rollout", "CartPole-v1", "--seed", 42, "--policy", "actions.csv", "--out", "trace.csv")
        ours = [numbers(row, "observation_") for row in read_trace(self.folder / "trace.csv")]
        np.testing.assert_array_equal(np.array(ours, np.float32), np.array(expected))

    def test_a_trained_policy_can_be_watched(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.succeed("rollout", "CartPole-v1", "--policy", "run", "--steps", 20, "--out", "trace.csv")
        self.assertGreaterEqual(len(read_trace(self.folder / "trace.csv")), 21)
        self.refuse("rollout", "Acrobot-v1", "--policy", "run", "--out", "trace.csv", saying=["CartPole-v1", "Acrobot-v1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
