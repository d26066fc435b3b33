"""A recipe whose replay is a server's: served, looked at, kept, killed."""

import csv
import re
import signal
import time
import unittest

import program

RECIPE = """
environment = "CartPole-v1"
algorithm = "dqn"
steps = 6000
seed = 3
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 2
horizon = 5
[replay]
capacity = 1000
min_size = 200
batch_size = 32
training_intensity = 8
[network]
hidden = [16]
[evaluation]
every = 3000
episodes = 5
[progress]
every = 500
"""
TIMES = {"seconds", "training_seconds", "collecting_seconds", "learning_seconds", "simulation_thread_seconds", "inference_thread_seconds",
         "waiting_thread_seconds"}  # fmt: skip


class ReplayServerTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "dqn.toml").write_text(RECIPE)

    def write_config(self, **changes):
        done = self.run_program("replay", "config", "dqn.toml")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout
        for key, value in changes.items():
            text, count = re.subn(rf"(?m)^{key} = .*$", f'{key} = "{value}"', text)
            self.assertEqual(count, 1, key)
        (self.folder / "replay.toml").write_text(text)

    def serve(self, *more):
        server = self.start("replay", "serve", "replay.toml", *more)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        line = server.stderr.readline()
        self.assertIn("serving 1 replay table at 'replay.sock'", line)
        self.listens_at = re.search(r"(and at '(.*)')?$", line)[2]
        return server

    def train(self, out, *more):
        done = self.run_program("train", "dqn.toml", "--quiet", "--out", out, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [{key: value for key, value in row.items() if key not in TIMES} for row in self.progress(out)]

    def progress(self, out):
        with open(self.folder / out / "progress.csv", newline="") as file:
            return list(csv.DictReader(file))

    def info(self, *more, address="replay.sock"):
        done = self.run_program("replay", "info", address, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_served_run_has_the_bits_of_an_embedded_one_and_the_server_tells_of_it(self):
        self.write_config()
        self.serve()
        self.assertEqual(self.train("served", "--set", "replay.address=replay.sock"), self.train("embedded"))
        self.assertIn("replay: 1000 of 1000 items", self.info())
        metrics = self.info("--prometheus")
        for line in metrics.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) menger_replay_\w+ .+|menger_replay_\w+(\{table="replay"\})? [0-9.]+)$')
        self.assertIn('menger_replay_items{table="replay"} 1000', metrics)

    def interrupt(self, run):
        """Ctrl-C for a run, which is to save and to end as asked."""
        run.send_signal(signal.SIGINT)
        if run.wait(program.PATIENCE_S) != 128 + signal.SIGINT:
            self.fail(f"it ended with {run.returncode}: {run.communicate()}")

    def test_a_run_over_tcp_has_the_same_bits(self):
        self.write_config(listen="127.0.0.1:0")
        self.serve()
        self.assertEqual(self.train("served", "--set", f"replay.address={self.listens_at}"), self.train("embedded"))
        self.assertIn("replay: 1000 of 1000 items", self.info(address=self.listens_at.replace("127.0.0.1", "localhost")))

    def test_a_run_over_tcp_goes_on_while_its_server_is_killed(self):
        self.write_config(listen="127.0.0.1:0")
        server = self.serve()
        run = self.start("train", "dqn.toml", "--quiet", "--out", "run", "--set", f"replay.address={self.listens_at}", "--set", "steps=1e8",
                         "--set", "evaluation.every=0")  # fmt: skip
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        self.wait_for_inserts()
        server.kill()
        server.wait()
        self.serve("--listen", self.listens_at)
        self.wait_for_inserts()
        self.interrupt(run)

    def test_a_run_goes_on_while_its_server_is_killed_and_what_is_kept_outlives_it(self):
        self.write_config(kind="journal")
        server = self.serve()
        run = self.start("train", "dqn.toml", "--quiet", "--out", "run", "--set", "replay.address=replay.sock", "--set", "steps=1e8",
                         "--set", "evaluation.every=0")  # fmt: skip
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        for outage in (0, 0, 2.5):  # Seconds; longer than a call of the run waits.
            self.wait_for_inserts()
            server.kill()
            server.wait()
            time.sleep(outage)
            server = self.serve()
        self.wait_for_inserts()
        self.interrupt(run)
        done = self.run_program("replay", "checkpoint", "replay.sock")
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = self.items()
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(program.PATIENCE_S), 0)
        self.serve()
        self.assertEqual(self.items(), kept)

    def test_a_run_whose_server_does_not_come_back_is_saved(self):
        self.write_config()
        server = self.serve()
        run = self.start("train", "dqn.toml", "--quiet", "--out", "run", "--set", "replay.address=replay.sock", "--set", "steps=1e8",
                         "--set", "evaluation.every=0", "--set", "replay.patience=1")  # fmt: skip
        self.addCleanup(run.kill)
        self.wait_for_inserts()
        server.kill()
        _, errors = run.communicate(timeout=program.PATIENCE_S)
        self.assertEqual(run.returncode, 1, errors)
        self.assertIn("What was learned is saved: `menger train --resume run`", errors)
        self.serve()
        done = self.run_program("train", "--resume", "run", "--quiet", "--set", f"steps={self.saved_steps() + 500}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def saved_steps(self):
        return max(int(path.name) for path in (self.folder / "run" / "checkpoints").iterdir() if path.name.isdigit())

    def items(self):
        return re.search(r"(?m)^replay: .*\n  inserts \d+", self.info())[0]

    def wait_for_inserts(self):
        def inserts():
            return int(re.search(r"inserts (\d+)", self.info())[1])

        before, end = inserts(), time.monotonic() + program.PATIENCE_S
        while inserts() <= before:
            self.assertLess(time.monotonic(), end)

    def test_a_saved_run_goes_on_with_its_server(self):
        self.write_config()
        self.serve()
        self.train("run", "--set", "replay.address=replay.sock")
        done = self.run_program("train", "--resume", "run", "--set", "steps=8000", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.progress("run")[-1]["steps"], "8000")
        done = self.run_program("train", "--resume", "run", "--set", "steps=9000", "--set", "replay.address=", "--quiet")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("replay.address", done.stderr)

    def test_what_cannot_be_served_or_found_is_said(self):
        for arguments, status, words in [
            (["config", "cartpole_ppo"], 2, "does not learn from replay"),
            (["config", "cartpole_dqm"], 2, "did you mean 'cartpole_dqn'"),
            (["serve", "missing.toml"], 2, "missing.toml"),
            (["info", "nowhere.sock"], 1, "nobody listens at 'nowhere.sock'"),
            (["info", "192.0.2.1:7000"], 2, "'192.0.2.1:7000' is not this machine's loopback"),
            (["info", "localhost:70000"], 2, "a port below 65536"),
            (["checkpoint", "unix:nowhere.sock"], 1, "nobody listens at 'nowhere.sock'"),
        ]:
            done = self.run_program("replay", *arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)
        self.write_config()
        self.serve()
        self.assertIn("not this machine's loopback", self.run_program("replay", "serve", "replay.toml", "--socket", "b", "--listen", "0.0.0.0:0").stderr)
        second = self.run_program("replay", "serve", "replay.toml")
        self.assertEqual(second.returncode, 1)
        self.assertIn("another process listens at 'replay.sock'", second.stderr)
        done = self.run_program("replay", "checkpoint", "replay.sock")
        self.assertIn("keeps nothing", done.stderr)


if __name__ == "__main__":
    unittest.main()
