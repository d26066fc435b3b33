"""Drives the built program: a folder of its own for each test, short recipes, and what a run left behind."""

import contextlib
import csv
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("MENGER_PROGRAM", ROOT / "build/release/menger"))
PATIENCE_S = 120

# Two hundredths of a second of PPO on CartPole: everything happens, nothing is learned.
QUICK = """
environment = "CartPole-v1"
algorithm = "ppo"
steps = 2048
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 4
horizon = 32
[network]
hidden = [8]
[ppo]
epochs = 2
minibatch_size = 64
[evaluation]
every = 512
episodes = 2
[checkpoint]
every = 256
keep = 2
[progress]
every = 256
"""


class ProgramTest(unittest.TestCase):
    """Each test runs in an empty folder with the quick recipe in `quick.toml`."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="menger_test_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "quick.toml").write_text(QUICK)

    def run_program(self, *arguments, **options):
        """Runs `menger ARGUMENTS`; returns the finished process with its texts."""
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=PATIENCE_S, **options)

    def start(self, *arguments):
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is not None or process.kill())
        return process

    def succeed(self, *arguments, **options):
        finished = self.run_program(*arguments, **options)
        self.assertEqual(finished.returncode, 0, finished.stderr)
        return finished

    def refuse(self, *arguments, saying, code=2, **options):
        """The program must refuse with one line on standard error that holds every text of `saying`. The code None
        stands for 1 or 2, where it depends on how the program was built."""
        finished = self.run_program(*arguments, **options)
        self.assertIn(finished.returncode, (1, 2) if code is None else (code,), finished.stdout + finished.stderr)
        errors = [line for line in finished.stderr.splitlines() if line.startswith("menger: error: ")]
        self.assertEqual(len(errors), 1, finished.stderr)
        for text in saying:
            self.assertIn(text, errors[0])

    def wait_for_checkpoint(self, process, run, beyond=-1):
        """Waits until the run has a checkpoint after `beyond` steps, or has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and newest_checkpoint(self.folder / run) <= beyond:
            self.assertLess(time.monotonic(), deadline, "no checkpoint appeared")
            time.sleep(0.002)

    def wait_for_evaluation(self, process):
        """Waits until the program evaluates: on two threads or more, the second of which has a name of its own."""
        deadline = time.monotonic() + PATIENCE_S
        while "evaluation-1" not in thread_names(process.pid):
            self.assertIsNone(process.poll(), "ended before it evaluated")
            self.assertLess(time.monotonic(), deadline, "no evaluation began")
            time.sleep(0.002)

    def interrupt(self, number, *arguments, run, beyond=-1):
        """Starts the program, sends it a signal once it has saved, and returns (exit status, output)."""
        process = self.start(*arguments)
        self.wait_for_checkpoint(process, run, beyond)
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, output + errors


def newest_checkpoint(run):
    steps = [int(path.name) for path in (run / "checkpoints").glob("*") if path.name.isdigit()]
    return max(steps, default=-1)


def thread_names(pid):
    names = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # Ended meanwhile.
            names.add(path.read_text().strip())
    return names


def children(pid):
    """The processes that a process has started, in the order of their ids."""
    pids = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # Ended meanwhile.
            pids.update(map(int, path.read_text().split()))
    return sorted(pids)


def archive_entries(path):
    """The named blobs of a checkpoint."""
    manifest = json.loads((path / "manifest.json").read_text())["archive"]["entries"]
    data = (path / "data.bin").read_bytes()
    return {name: data[at["offset"]:at["offset"] + at["size"]] for name, at in manifest.items()}


def rows_without_time(run):
    """progress.csv as dictionaries, without the columns that a clock decides."""
    with open(run / "progress.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in rows]
