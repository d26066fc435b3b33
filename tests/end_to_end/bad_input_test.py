"""Each mistake has its own message, which says what would be right, and leaves nothing behind."""

import os
import subprocess
import unittest

from program import PATIENCE_S, PROGRAM, QUICK, ProgramTest


class BadInputTest(ProgramTest):
    def refuse_setting(self, setting, *saying, code=2):
        self.refuse("train", "quick.toml", "--set", setting, "--out", "run", saying=saying, code=code)
        self.assertFalse((self.folder / "run").exists())

    def test_an_unknown_key_is_refused_with_the_nearest_one(self):
        self.refuse_setting("ppo.discont=0.9", "ppo.discont", "did you mean 'ppo.discount'?")

    def test_an_unknown_top_level_key_is_refused_with_the_nearest_one(self):
        self.refuse_setting("sead=3", "'sead'", "did you mean 'seed'?")

    def test_an_unknown_section_is_refused_with_the_nearest_one(self):
        self.refuse_setting("colector.horizon=3", "colector", "did you mean 'collector'?")

    def test_an_unknown_key_in_a_file_is_refused_with_its_line(self):
        with open(self.folder / "quick.toml", "a") as file:
            file.write("evry = 3\n")
        self.refuse("train", "quick.toml", saying=["quick.toml:24", "progress.evry", "'progress.every'"])

    def test_a_section_that_the_environment_has_no_use_for_is_refused_with_whose_it_is(self):
        (self.folder / "own.toml").write_text(QUICK + "[host]\npython = 'python3'\n")
        for command in (("train", "quick.toml", "--set", "host.python=python3"), ("train", "own.toml")):
            self.refuse(*command, saying=["[host] does nothing for environment CartPole-v1", "Python environments"])

    def test_a_place_where_no_run_can_be_kept_is_refused_before_anything_is_measured(self):
        (self.folder / "file").write_text("in the way")
        (self.folder / "taken").mkdir()
        (self.folder / "taken" / "experiment.toml").write_text("")
        for out, code, *saying in (("file", 2, "no run can be kept in 'file'", "/file' is no folder", "--out"),
                                   ("file/run", 2, "no run can be kept in 'file/run'", "/file' is no folder"),
                                   ("taken", 1, "'taken' already holds a run")):  # fmt: skip
            for more in ((), ("--seeds", "2")):
                finished = self.run_program("train", "cartpole_ppo", "--out", out, *more)
                self.assertEqual(finished.returncode, code, finished.stderr)
                self.assertEqual(len(finished.stderr.splitlines()), 1, finished.stderr)  # Nothing was measured.
                for text in saying:
                    self.assertIn(text, finished.stderr)
        (self.folder / "runs").write_text("in the way")
        self.refuse("train", "cartpole_ppo", saying=["no run can be kept in 'runs'"])

    @unittest.skipIf(os.geteuid() == 0, "the superuser may write everywhere")
    def test_a_folder_that_must_not_be_written_is_refused_before_anything_is_measured(self):
        (self.folder / "locked").mkdir(mode=0o500)
        self.refuse("train", "cartpole_ppo", "--out", "locked/run", code=None,
                    saying=["no run can be kept in 'locked/run'", "/locked' must not be written"])  # fmt: skip

    def test_a_section_of_another_algorithm_is_refused(self):
        self.refuse_setting("a2c.discount=0.9", "a2c", "another algorithm", "ppo")

    def test_a_wrong_type_is_refused(self):
        self.refuse_setting("ppo.discount=high", "ppo.discount", "high", "number")

    def test_a_value_out_of_range_is_refused(self):
        self.refuse_setting("ppo.discount=1.5", "ppo.discount", "1.5", "0 to 1")

    def test_a_minibatch_larger_than_what_is_collected_is_refused(self):
        self.refuse_setting("ppo.minibatch_size=1000000", "ppo.minibatch_size = 1000000", "collector.environments = 4",
                            "collector.horizon = 32", "128 at most")

    def test_a_setting_without_a_value_is_refused(self):
        self.refuse_setting("ppo.discount", "key=value")

    def test_an_unknown_choice_is_refused(self):
        self.refuse_setting("device=gpu", "device", "gpu", "cpu, cuda")

    def test_a_file_that_is_not_toml_is_refused_with_its_line(self):
        (self.folder / "broken.toml").write_text("steps = 3\nsteps = = 4\n")
        self.refuse("train", "broken.toml", saying=["broken.toml:2", "not valid TOML"])

    def test_an_unknown_environment_is_refused_with_the_nearest_one(self):
        self.refuse_setting("environment=CartPole-v2", "CartPole-v2", "CartPole-v1")

    def test_an_unknown_algorithm_is_refused_with_the_nearest_one(self):
        self.refuse_setting("algorithm=pp0", "pp0", "did you mean 'ppo'?")

    def test_an_unknown_recipe_is_refused_with_the_nearest_one(self):
        self.refuse("train", "cartpole_pp", saying=["cartpole_pp", "did you mean 'cartpole_ppo'?"])

    def test_a_network_that_does_not_fit_the_environment_is_refused(self):
        self.refuse("train", "quick.toml", "--set", "network.kind=nature_cnn", "--out", "run", code=None,
                    saying=["nature_cnn"])
        self.assertFalse((self.folder / "run").exists())

    def test_environments_that_workers_cannot_share_are_refused(self):
        self.refuse_setting("collector.workers=3", "workers = 3", "serial has one thread", "kind to local")
        self.refuse("train", "quick.toml", "--set", "collector.kind=alternating", "--set", "collector.groups=3", "--out", "run",
                    saying=["alternating", "multiple of workers"])

    def test_cuda_where_there_is_none_is_refused(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has a CUDA device")
        self.refuse("train", "quick.toml", "--device", "cuda", "--out", "run", code=1, saying=["cuda"])
        self.assertFalse((self.folder / "run").exists())

    def test_a_folder_that_holds_a_run_is_not_overwritten(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.refuse("train", "quick.toml", "--out", "run", code=1, saying=["already holds a run", "--resume run"])

    def test_a_full_disk_is_named_and_the_last_checkpoint_stays(self):
        if os.geteuid() != 0:
            self.skipTest("a small file system can be mounted by root alone")
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "menger_test", disk], capture_output=True).returncode:
            self.skipTest("this machine does not let tests mount a file system")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.refuse("train", "quick.toml", "--set", "network.hidden=[32]", "--set", "checkpoint.keep=1000",
                    "--set", "steps=200000", "--out", "disk/run", code=1, saying=["disk/run", "No space left"])
        self.succeed("evaluate", "disk/run", "--episodes", 1)

    def test_a_folder_without_a_run_cannot_be_resumed(self):
        self.refuse("train", "--resume", "nowhere", saying=["nowhere", "experiment.toml"])

    def test_a_folder_without_a_run_cannot_be_evaluated(self):
        self.refuse("evaluate", "nowhere", saying=["nowhere", "experiment.toml"])

    def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(self):
        self.succeed("train", "quick.toml", "--out", "run")
        self.refuse("evaluate", "run", "--checkpoint", "5", saying=["'5'", "newest, best, 1792, 2048"])

    def test_a_negative_seed_is_refused(self):
        self.refuse("train", "quick.toml", "--seed", "-1", "--out", "run", saying=["error: --seed: ", "-1"])
        self.refuse("rollout", "CartPole-v1", "--seed", "-1", "--out", "trace.csv", saying=["--seed", "-1"])
        self.refuse("evaluate", "run", "--seed", "-1", saying=["--seed", "-1"])

    def test_an_unknown_command_is_refused_with_the_nearest_one(self):
        self.refuse("trian", saying=["'trian'", "did you mean 'train'?"])
        self.refuse(saying=["subcommand is required", "--help"])

    def test_training_nothing_is_refused(self):
        self.refuse("train", saying=["RECIPE", "--resume"])

    def test_seeds_and_resume_exclude_each_other(self):
        self.refuse("train", "--resume", "run", "--seeds", "2", saying=["--resume", "--seeds"])

    def test_a_folder_without_a_name_is_refused(self):
        for option in ("--out", "--resume", "--init-from"):
            self.refuse("train", "quick.toml", option, "", saying=[f"{option}: the name of the folder is empty"])
        self.assertFalse((self.folder / "runs").exists())

    def test_an_unknown_option_of_the_command_line_is_refused(self):
        self.refuse("train", "quick.toml", "--devce", "cpu", saying=["--devce"])

    def test_an_unknown_name_cannot_be_described(self):
        self.refuse("describe", "CartPole", saying=["'CartPole'", "did you mean 'CartPole-v1'?"])

    def test_an_unknown_policy_is_refused(self):
        self.refuse("rollout", "CartPole-v1", "--policy", "nobody", "--out", "trace.csv", saying=["nobody", "random"])

    def test_recorded_actions_that_do_not_fit_are_refused_with_their_line(self):
        (self.folder / "actions.csv").write_text("action_0\n1\n0.5\n")
        self.refuse("rollout", "CartPole-v1", "--policy", "actions.csv", "--out", "trace.csv",
                    saying=["actions.csv:3", "0.5", "whole numbers"])

    def test_recorded_actions_of_another_shape_are_refused(self):
        (self.folder / "actions.csv").write_text("action_0,action_1\n1,1\n")
        self.refuse("rollout", "CartPole-v1", "--policy", "actions.csv", "--out", "trace.csv",
                    saying=["actions.csv:1", "a column 'action_1'", "1 element"])

    def test_a_discrete_action_out_of_range_is_refused_by_the_environment(self):
        (self.folder / "actions.csv").write_text("action_0\n1\n2\n")
        self.refuse("rollout", "CartPole-v1", "--policy", "actions.csv", "--out", "trace.csv", saying=["CartPole-v1", "2"])

    def test_results_go_to_standard_output_and_nothing_else_does(self):
        finished = subprocess.run([PROGRAM, "list", "recipes", "--names"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertIn("cartpole_ppo", finished.stdout.split())
        self.assertEqual(finished.stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
