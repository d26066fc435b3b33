"""A run that stops, however it stops, goes on as if it had not."""

import json
import os
import random
import shutil
import signal
import unittest

from program import PATIENCE_S, PROGRAM, ProgramTest, archive_entries, children, newest_checkpoint, rows_without_time

# Long enough to be stopped in the middle: about a second.
LONG = ["--set", "steps=60000", "--set", "checkpoint.every=2048", "--set", "evaluation.every=8192"]
# The same with replay, prioritised, of two environments: all of its content must come back.
REPLAY = """
environment = "CartPole-v1"
algorithm = "dqn"
steps = 20000
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 2
horizon = 8
[network]
hidden = [8]
[dqn]
n_step = 3
[replay]
capacity = 3000
min_size = 500
sampler = "prioritised"
compression = "automatic"
[evaluation]
every = 4096
episodes = 2
[checkpoint]
every = 512
keep = 2
[progress]
every = 512
"""
# Items that are sequences, in the middle of which runs stop, with a policy that remembers.
SEQUENCES = (
    REPLAY.replace('"CartPole-v1"', '"MaskedCartPole-v1"')
    .replace('"dqn"', '"r2d2"')
    .replace("[network]", '[network]\nkind = "lstm"\nlstm_size = 8')
    .replace("[dqn]\nn_step = 3", "[r2d2]\nsequence_length = 8\nsequence_overlap = 4\nburn_in = 4")
)
# Episodes on two worker processes; each iteration is 6400 steps.
EPISODES = """
environment = "Pendulum-v1"
algorithm = "es"
steps = 3_000_000
[runtime]
workers = 2
[network]
hidden = [8]
[transforms]
apply = ["normalise_observation"]
[es]
pairs = 16
noise_entries = 10_000
observe_probability = 0.1
[evaluation]
every = 1_000_000
episodes = 2
[checkpoint]
every = 6400
"""
# What depends on a clock or on the text of the folder, and so may differ.
CLOCKED = {"loop/counters"}


def evaluations(run):
    summary = json.loads((run / "summary.json").read_text())
    return summary["evaluation"], summary["best"]


class ResumeTest(ProgramTest):
    def assert_same_result(self, one, other):
        self.assertEqual(newest_checkpoint(one), newest_checkpoint(other))
        first = archive_entries(one / "checkpoints" / str(newest_checkpoint(one)))
        second = archive_entries(other / "checkpoints" / str(newest_checkpoint(other)))
        self.assertEqual(first.keys(), second.keys())
        for name in first.keys() - CLOCKED:
            self.assertEqual(first[name], second[name], name)
        self.assertEqual(rows_without_time(one), rows_without_time(other))

    def stop_and_resume(self, number, *more):
        self.succeed("train", "quick.toml", *LONG, *more, "--out", "straight")
        status, output = self.interrupt(number, "train", "quick.toml", *LONG, *more, "--out", "stopped", run="stopped")
        self.assertEqual(status, 128 + number, output)
        self.assertLess(newest_checkpoint(self.folder / "stopped"), 60000)
        self.assertIn(f"{PROGRAM} train --resume stopped", output)
        self.succeed("train", "--resume", "stopped")
        self.assert_same_result(self.folder / "straight", self.folder / "stopped")

    def test_an_interrupted_run_resumes_bit_for_bit(self):
        self.stop_and_resume(signal.SIGINT)

    def test_a_terminated_run_resumes_bit_for_bit(self):
        self.stop_and_resume(signal.SIGTERM, "--set", "algorithm=ppo", "--set", "transforms.apply=[normalise_observation, normalise_reward]")

    def test_a_run_with_two_workers_resumes_bit_for_bit(self):
        self.stop_and_resume(signal.SIGINT, "--set", "collector.kind=local", "--set", "collector.workers=2",
                             "--set", "collector.environments=4")

    def test_a_run_with_replay_resumes_bit_for_bit(self):
        self.resume_with_replay(REPLAY)

    def test_a_run_with_sequences_of_replay_resumes_bit_for_bit(self):
        self.resume_with_replay(SEQUENCES)

    def resume_with_replay(self, recipe):
        (self.folder / "replay.toml").write_text(recipe)
        trained = self.run_program("train", "replay.toml", "--out", "straight")
        if "needs the torch library" in trained.stderr:
            self.skipTest("this program was built without torch")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        for stops in range(3):
            arguments = ["--resume", "stopped"] if stops else ["replay.toml", "--out", "stopped"]
            before = newest_checkpoint(self.folder / "stopped")
            status, output = self.interrupt(signal.SIGINT, "train", *arguments, run="stopped", beyond=before + 600)
            self.assertEqual(status, 128 + signal.SIGINT, output)
        self.assertLess(newest_checkpoint(self.folder / "stopped"), 20000)
        self.succeed("train", "--resume", "stopped")
        self.assert_same_result(self.folder / "straight", self.folder / "stopped")

    def test_a_run_of_episodes_resumes_bit_for_bit_whatever_happened_to_its_workers(self):
        (self.folder / "episodes.toml").write_text(EPISODES)
        self.succeed("train", "episodes.toml", "--set", "runtime.isolation=thread", "--out", "straight")
        process = self.start("train", "episodes.toml", "--out", "stopped")
        for steps in (0, 300_000, 600_000):
            self.wait_for_checkpoint(process, "stopped", beyond=steps)
            os.kill(children(process.pid)[0], signal.SIGKILL)
        self.wait_for_checkpoint(process, "stopped", beyond=900_000)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, output + errors)
        self.assertIn("was killed by SIGKILL", errors)
        self.assertLess(newest_checkpoint(self.folder / "stopped"), 3_000_000)
        self.succeed("train", "--resume", "stopped", "--set", "runtime.workers=1")
        straight, stopped = self.folder / "straight", self.folder / "stopped"
        one = archive_entries(straight / "checkpoints" / str(newest_checkpoint(straight)))
        other = archive_entries(stopped / "checkpoints" / str(newest_checkpoint(stopped)))
        for name in one.keys() - CLOCKED - {"experiment"}:  # Which says how many workers there were.
            self.assertEqual(one[name], other[name], name)
        self.assertEqual(rows_without_time(straight), rows_without_time(stopped))

    def test_what_was_learned_is_safe_before_the_last_evaluation(self):
        process = self.start("train", "quick.toml", "--set", "evaluation.every=0", "--set", "evaluation.episodes=100000",
                             "--set", "checkpoint.every=0", "--set", "environment=MountainCar-v0", "--set", "collector.kind=local",
                             "--set", "collector.workers=2", "--out", "run")  # fmt: skip
        self.wait_for_evaluation(process)
        process.kill()
        process.wait()
        self.assertEqual(newest_checkpoint(self.folder / "run"), 2048)
        resumed = self.succeed("train", "--resume", "run", "--set", "evaluation.episodes=2")
        self.assertIn("completed after 2048 steps", resumed.stdout)

    def stop_in_an_evaluation_and_resume(self, *recipe):
        # Episodes of 200 steps; evaluations on two threads, which can be seen from outside.
        recipe += ("--set", "environment=MountainCar-v0", "--set", "collector.kind=local", "--set", "collector.workers=2",
                   "--set", "collector.environments=4")
        self.succeed("train", *recipe, "--out", "straight")
        arguments = ["train", *recipe, "--set", "evaluation.episodes=100000", "--out", "stopped"]
        for _ in range(2):  # Twice the same evaluation, of which the whole would take long.
            process = self.start(*arguments)
            self.wait_for_evaluation(process)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 128 + signal.SIGINT, output + errors)
            self.assertIn("train --resume stopped", output)
            arguments = ["train", "--resume", "stopped"]
        self.assertFalse((self.folder / "stopped" / "checkpoints" / "best").exists())
        self.succeed("train", "--resume", "stopped", "--set", "evaluation.episodes=2")
        self.assert_same_result(self.folder / "straight", self.folder / "stopped")
        self.assertEqual(evaluations(self.folder / "straight"), evaluations(self.folder / "stopped"))

    def test_a_run_stopped_in_an_evaluation_makes_it_when_it_resumes(self):
        self.stop_in_an_evaluation_and_resume("quick.toml", "--set", "transforms.apply=[normalise_observation]")

    def test_a_run_with_replay_stopped_in_an_evaluation_makes_it_when_it_resumes(self):
        (self.folder / "replay.toml").write_text(REPLAY)
        self.stop_in_an_evaluation_and_resume("replay.toml", "--set", "steps=6000")

    def test_a_damaged_pack_of_replay_is_noticed_and_the_checkpoint_before_is_used(self):
        (self.folder / "replay.toml").write_text(REPLAY)
        self.succeed("train", "replay.toml", "--set", "steps=4000", "--out", "run")
        newest = newest_checkpoint(self.folder / "run")
        folder = self.folder / "run" / "checkpoints" / str(newest) / "folder.consumer.replay"
        pack = sorted(folder.glob("pack-*.bin"))[-1]
        damaged = bytearray(pack.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        pack.unlink()  # Not through the link that the checkpoint before may share.
        pack.write_bytes(damaged)
        finished = self.succeed("train", "--resume", "run", "--set", "steps=4400")
        self.assertIn(f"checkpoints/{newest}' cannot be used", finished.stderr)
        self.assertIn(pack.name, finished.stderr)

    def test_a_second_signal_stops_at_once(self):
        process = self.start("train", "quick.toml", "--set", "steps=1e12", "--set", "collector.horizon=20000",
                             "--set", "ppo.epochs=1000", "--set", "ppo.minibatch_size=1", "--out", "run")
        while not (self.folder / "run" / "build.txt").exists():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)  # One slab of this recipe takes hours.
        self.assertIn(process.returncode, (128 + signal.SIGINT, 128 + signal.SIGTERM))

    def test_a_run_killed_at_random_moments_always_resumes(self):
        seed = random.randrange(10**6)
        moments = random.Random(seed)
        self.succeed("train", "quick.toml", *LONG, "--out", "straight")
        arguments = ["train", "quick.toml", *LONG, "--set", "checkpoint.every=256", "--out", "killed"]
        kills = 0
        for _ in range(15):
            before = newest_checkpoint(self.folder / "killed")
            process = self.start(*arguments)
            # Anywhere: between checkpoints, while one is written, while an old one is removed.
            self.wait_for_checkpoint(process, "killed", beyond=before)
            try:
                process.wait(moments.uniform(0, 0.03))
            except Exception:  # Still running, as it should be.
                kills += 1
            process.kill()
            process.communicate()
            self.assertGreaterEqual(newest_checkpoint(self.folder / "killed"), 0, f"seed {seed}")
            arguments = ["train", "--resume", "killed"]
        self.assertGreater(kills, 5)
        finished = self.run_program(*arguments)
        self.assertEqual(finished.returncode, 0, f"seed {seed}: {finished.stderr}")
        self.assertNotIn("cannot be used", finished.stderr)
        one, other = self.folder / "straight", self.folder / "killed"
        self.assertEqual(rows_without_time(one), rows_without_time(other), f"seed {seed}")
        parameters = "algorithm/model/parameters"
        self.assertEqual(archive_entries(one / "checkpoints" / str(newest_checkpoint(one)))[parameters],
                         archive_entries(other / "checkpoints" / str(newest_checkpoint(other)))[parameters])

    def test_a_finished_run_can_be_trained_longer(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.succeed("train", "--resume", "run", "--set", "steps=4096")
        self.assertEqual(newest_checkpoint(self.folder / "run"), 4096)
        self.assertIn("steps = 4096", (self.folder / "run" / "experiment.toml").read_text())

    def test_resuming_a_finished_run_says_how_to_train_it_longer(self):
        self.succeed("train", "quick.toml", "--out", "run")
        shutil.copytree(self.folder / "run", self.folder / "before")
        self.assertIn("nothing is left to do; --set steps=N", self.succeed("train", "--resume", "run").stderr)
        self.assert_same_result(self.folder / "before", self.folder / "run")

    def test_what_a_run_is_cannot_change_half_way(self):
        self.succeed("train", "quick.toml", "--out", "run")
        text = (self.folder / "run" / "experiment.toml").read_text()
        for setting, saying in (("seed=9", "seed = 9"), ("optimiser.kind=rmsprop", "optimiser.kind = rmsprop"),
                                ("environment=MountainCar-v0", "environment = MountainCar-v0")):
            self.refuse("train", "--resume", "run", "--set", setting, saying=[saying, "'run'", "--init-from run"])
        self.assertEqual(text, (self.folder / "run" / "experiment.toml").read_text())

    def test_a_run_that_ended_before_its_first_checkpoint_says_what_to_do(self):
        self.succeed("train", "quick.toml", "--out", "run")
        shutil.rmtree(self.folder / "run" / "checkpoints")
        self.refuse("train", "--resume", "run", saying=["'run' has no checkpoint", "remove it"])

    def test_a_truncated_checkpoint_is_named_and_an_older_one_taken(self):
        self.succeed("train", "quick.toml", "--out", "run")
        checkpoint = self.folder / "run" / "checkpoints" / "2048"
        data = (checkpoint / "data.bin").read_bytes()
        (checkpoint / "data.bin").write_bytes(data[: len(data) // 2])
        finished = self.succeed("train", "--resume", "run")
        self.assertIn("checkpoints/2048' cannot be used", finished.stderr)
        self.assertIn("data.bin", finished.stderr)
        self.assertIn("at 1792 of 2048 steps", finished.stderr)

    def test_without_a_whole_checkpoint_the_damaged_file_is_named(self):
        self.succeed("train", "quick.toml", "--set", "checkpoint.keep=1", "--out", "run")
        for name in ("2048", "best"):
            data = self.folder / "run" / "checkpoints" / name / "data.bin"
            altered = bytearray(data.read_bytes())
            altered[len(altered) // 2] ^= 1
            data.write_bytes(altered)
        self.refuse("train", "--resume", "run", code=1, saying=["checkpoints/2048/data.bin"])

    def test_where_only_the_best_is_left_that_is_gone_on_from(self):
        self.succeed("train", "quick.toml", "--out", "run")
        for name in ("1792", "2048"):
            shutil.rmtree(self.folder / "run" / "checkpoints" / name)
        self.assertRegex(self.succeed("train", "--resume", "run").stderr, r"resuming 'run' at \d+ of 2048 steps")

    def test_a_checkpoint_of_another_architecture_is_refused(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.refuse("train", "--resume", "run", "--set", "network.hidden=[16]", code=1, saying=["(4, 8)", "(4, 16)"])

    def test_a_checkpoint_of_another_architecture_is_no_start(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.refuse("train", "quick.toml", "--set", "network.hidden=[16]", "--init-from", "run", "--out", "other",
                    code=1, saying=["(4, 8)", "(4, 16)"])
        self.assertFalse((self.folder / "other").exists())

    def test_a_recipe_beside_resume_must_be_the_run_s_own(self):
        self.succeed("train", "quick.toml", "--out", "run")
        (self.folder / "other.toml").write_text("environment = 'Pendulum-v1'\nalgorithm = 'ppo'\n")
        self.refuse("train", "other.toml", "--resume", "run", saying=["CartPole-v1", "Pendulum-v1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
