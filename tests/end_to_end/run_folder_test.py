"""What a run leaves behind can be read by others, and is enough to do it again."""

import json
import math
import shutil
import signal
import time
import unittest

from program import PATIENCE_S, ProgramTest, archive_entries, newest_checkpoint, rows_without_time

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData


class RunFolderTest(ProgramTest):
    def test_a_run_folder_holds_everything(self):
        self.succeed("train", "quick.toml")
        run = self.folder / "runs" / "quick-1"
        for name in ("experiment.toml", "build.txt", "progress.csv", "events.out.tfevents.0", "summary.json", "checkpoints/best"):
            self.assertTrue((run / name).exists(), name)
        self.assertEqual(sorted(path.name for path in (run / "checkpoints").iterdir()), ["1792", "2048", "best"])
        self.assertTrue((run / "progress.csv").read_text().startswith("steps,seconds,episode_return_mean,"))
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["steps"]), ("completed", 2048))
        self.assertEqual(summary["evaluation"]["episodes"], 2)

    def long_training(self):
        """One that goes on for longer than any test, once it has written its first rows."""
        process = self.start("train", "quick.toml", "--set", "steps=1000000000", "--set", "evaluation.every=0", "--out", "run")
        table, end = self.folder / "run" / "progress.csv", time.monotonic() + PATIENCE_S
        while not (table.exists() and len(table.read_text().splitlines()) > 2):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        return process

    def test_a_folder_that_cannot_be_written_is_not_taken_for_one_in_use(self):
        self.succeed("train", "quick.toml", "--out", "run")
        lock = self.folder / "run" / "lock"
        lock.unlink()
        lock.mkdir()  # What even the superuser cannot open for writing.
        self.refuse("train", "--resume", "run", "--set", "steps=4096", code=None, saying=["run/lock"])

    def test_one_process_at_a_time_trains_in_a_folder(self):
        first = self.long_training()
        self.refuse("train", "--resume", "run", saying=["another process trains in 'run' now", "one process at a time"], code=1)
        first.send_signal(signal.SIGINT)
        first.wait(PATIENCE_S)
        self.succeed("train", "--resume", "run", "--set", "steps=1")

    def test_a_folder_that_is_removed_ends_its_training(self):
        process = self.long_training()
        while (self.folder / "run").exists():  # It writes meanwhile.
            shutil.rmtree(self.folder / "run", ignore_errors=True)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertIn(process.returncode, (1, 2), errors)
        self.assertRegex(errors, "menger: error: .*'run/.*(was removed while it was written to|No such file or directory)")

    def test_tensorboard_reads_the_events(self):
        self.succeed("train", "quick.toml", "--out", "run")
        events = EventAccumulator(str(self.folder / "run"))
        events.Reload()
        returns = events.Scalars("episode/return_mean")
        rows = rows_without_time(self.folder / "run")
        self.assertEqual([event.step for event in returns], [int(row["steps"]) for row in rows])
        for event, row in zip(returns, rows):
            self.assertAlmostEqual(event.value, float(row["episode_return_mean"]), places=3)
        self.assertIn("learning/policy_loss", events.Tags()["scalars"])

    def test_tensorboard_has_the_settings_as_a_text_and_as_hyperparameters(self):
        for seed in (1, 2):
            self.succeed("train", "quick.toml", "--set", "ppo.clip=0.3", "--seed", seed, "--out", f"logs/{seed}")
        self.succeed("train", "--resume", "logs/1", "--set", "steps=3000")
        events = EventAccumulator(str(self.folder / "logs/1"))
        events.Reload()
        text, = events.Tensors("settings")  # Once, also after it was resumed.
        self.assertIn("    clip = 0.3  # from --set\n", text.tensor_proto.string_val[0].decode())
        self.assertIn(b"\n    [network]\n", text.tensor_proto.string_val[0])
        content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        hparams = HParamsPluginData.FromString(content).session_start_info.hparams
        self.assertAlmostEqual(hparams["ppo.clip"].number_value, 0.3)
        self.assertEqual((hparams["steps"].number_value, hparams["environment"].string_value), (2048, "CartPole-v1"))
        self.assertEqual((hparams["network.hidden"].string_value, hparams["collector.pin"].bool_value), ("[8]", True))
        self.assertNotIn(math.nan, [value.number_value for value in hparams.values()])

    def test_the_resolved_experiment_gives_the_same_run(self):
        self.succeed("train", "quick.toml", "--seed", "5", "--set", "ppo.clip=0.1", "--out", "first")
        self.succeed("train", "first/experiment.toml", "--out", "second")
        first, second = (archive_entries(self.folder / run / "checkpoints" / "2048") for run in ("first", "second"))
        for name in first.keys() - {"loop/counters"}:
            self.assertEqual(first[name], second[name], name)

    def test_the_seed_option_wins_over_set_and_set_over_the_recipe(self):
        self.succeed("train", "quick.toml", "--set", "seed=4", "--set", "ppo.clip=0.3", "--seed", "5", "--out", "run")
        text = (self.folder / "run" / "experiment.toml").read_text()
        self.assertIn("\nseed = 5  # from --seed\n", text)
        self.assertIn("\nclip = 0.3  # from --set\n", text)

    def test_what_is_left_to_the_program_is_chosen_once_and_written_down(self):
        self.succeed("train", "quick.toml", "--set", "collector.kind=auto", "--set", "collector.workers=auto",
                     "--set", "learner_threads=auto", "--out", "run")
        text = (self.folder / "run" / "experiment.toml").read_text()
        self.assertNotIn("auto", text)
        resumed = self.succeed("train", "--resume", "run", "--set", "steps=4096")
        text = text.replace("steps = 2048  # from the recipe", "steps = 4096  # from --set")
        self.assertEqual(text, (self.folder / "run" / "experiment.toml").read_text())
        self.assertNotIn("chose", resumed.stderr)

    def test_a_run_can_start_from_the_parameters_of_another(self):
        self.succeed("train", "quick.toml", "--set", "ppo.learning_rate=0", "--set", "steps=128", "--seed", "3", "--out", "first")
        self.succeed("train", "quick.toml", "--set", "ppo.learning_rate=0", "--set", "steps=128", "--seed", "4",
                     "--init-from", "first", "--out", "second")
        self.succeed("train", "quick.toml", "--set", "ppo.learning_rate=0", "--set", "steps=128", "--seed", "4", "--out", "fresh")
        parameters = [archive_entries(self.folder / run / "checkpoints" / "128")["algorithm/model/parameters"]
                      for run in ("first", "second", "fresh")]
        self.assertEqual(parameters[0], parameters[1])
        self.assertNotEqual(parameters[0], parameters[2])

    def test_training_stops_once_the_return_is_reached_twice_in_a_row(self):
        finished = self.succeed("train", "quick.toml", "--set", "evaluation.stop_at_return=1", "--out", "run")
        self.assertIn("solved after 1024 steps", finished.stdout)
        self.assertEqual(newest_checkpoint(self.folder / "run"), 1024)

    def test_evaluation_prints_the_same_for_the_same_seed(self):
        self.succeed("train", "quick.toml", "--out", "run")
        arguments = ("evaluate", "run", "--episodes", "5", "--seed", "11")
        first = self.succeed(*arguments).stdout
        self.assertEqual(first, self.succeed(*arguments).stdout)
        self.assertRegex(first, r"mean [\d.]+, standard deviation [\d.]+, minimum [\d.]+, maximum [\d.]+ over 5 episodes")
        self.assertIn("checkpoints/best", self.succeed(*arguments, "--checkpoint", "best").stdout)

    def test_an_interrupted_evaluation_prints_what_has_ended(self):
        self.succeed("train", "quick.toml", "--out", "run")
        process = self.start("evaluate", "run", "--episodes", "1000000", "--threads", "2")
        self.wait_for_evaluation(process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
        self.assertRegex(output, r"interrupted by SIGINT: \d+ of 1000000 episodes had ended")

    def test_a_policy_with_a_memory_is_trained_resumed_evaluated_and_watched(self):
        short = ("--set", "collector.horizon=8", "--set", "ppo.minibatch_size=64", "--set", "evaluation.episodes=1")
        trained = self.run_program("train", "cartpole_masked_ppo_lstm", "--set", "steps=256", *short, "--out", "run")
        if "needs the torch library" in trained.stderr:
            self.skipTest("this program was built without torch")
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.succeed("train", "--resume", "run", "--set", "steps=512")
        evaluated = self.succeed("evaluate", "run", "--episodes", 2, "--seed", 3).stdout
        self.assertEqual(evaluated, self.succeed("evaluate", "run", "--episodes", 2, "--seed", 3).stdout)
        # Greedy from the same seed and state, a rollout plays the episode that an evaluation scores.
        played = self.succeed("rollout", "MaskedCartPole-v1", "--policy", "run", "--seed", 3, "--steps", 500, "--out", "-")
        ends = [line.split(",")[3:5] for line in played.stdout.splitlines()[2:]]
        length = 1 + next(i for i, end in enumerate(ends) if "1" in end)
        scored = self.succeed("evaluate", "run", "--episodes", 1, "--seed", 3).stdout
        self.assertIn(f"episode length: mean {length}.0", scored)

    def test_a_run_ends_with_the_step_of_all_environments_that_reaches_its_steps_and_describe_says_so(self):
        finished = self.succeed("train", "quick.toml", "--set", "steps=302", "--out", "run")  # Slabs of 4 x 32 steps.
        self.assertIn("completed after 304 steps", finished.stdout)
        self.assertIn("step of all environments that reaches it", self.succeed("describe", "experiment").stdout)

    def test_runs_are_listed_with_how_they_ended_and_what_was_changed(self):
        self.assertIn("there is no folder 'runs'", self.run_program("runs").stderr)
        self.succeed("train", "quick.toml", "--seeds", "2", "--set", "ppo.clip=0.1")
        self.interrupt(signal.SIGINT, "train", "quick.toml", "--set", "steps=100000000", run="runs/quick-2")
        header, *rows = self.succeed("runs").stdout.splitlines()
        self.assertEqual(header.split()[:5], ["run", "environment", "algorithm", "state", "steps"])
        self.assertRegex(rows[0], r"^runs/quick-1/seed-2 +CartPole-v1 +ppo +completed +2048 .* seed=2 ppo\.clip=0\.1$")
        self.assertRegex(rows[2], r"^runs/quick-2 +CartPole-v1 +ppo +interrupted +\d+ of 100000000 .* steps=100000000$")
        table = json.loads(self.succeed("runs", "--json").stdout)
        summary = json.loads((self.folder / "runs/quick-1/seed-3/summary.json").read_text())
        self.assertEqual(table[1]["best_return"], summary["best"]["return_mean"])
        names = self.succeed("runs", "runs/quick-1", "--names").stdout.split()
        self.assertEqual(names, ["runs/quick-1/seed-2", "runs/quick-1/seed-3"])

    def test_a_run_is_running_while_it_trains(self):
        process = self.start("train", "quick.toml", "--set", "steps=100000000", "--out", "run")
        self.wait_for_checkpoint(process, "run")
        self.assertEqual(json.loads(self.succeed("runs", ".", "--json").stdout)[0]["state"], "running")
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(json.loads(self.succeed("runs", ".", "--json").stdout)[0]["state"], "unfinished")

    def test_describe_teaches_the_form_of_a_recipe(self):
        text = self.succeed("describe", "experiment").stdout
        self.assertRegex(text, r"environment +\(required\) +text")
        self.assertRegex(text, r"algorithm +\(required\) +text")
        self.assertIn("sections: collector, network,", text)
        self.assertIn("--set collector.kind=auto", self.succeed("describe", "collector").stdout)
        # Its example can be trained.
        example = text[text.index("  environment = "):text.index("`menger train FILE`")]
        (self.folder / "example.toml").write_text(example)
        self.succeed("train", "example.toml", "--set", "steps=1", "--set", "evaluation.episodes=1", "--out", "run")


if __name__ == "__main__":
    unittest.main(verbosity=2)
