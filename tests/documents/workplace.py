"""A folder in which what the documents say can be done as they say it, with the program that was built."""

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from blocks import HERE, ROOT

PROGRAM = pathlib.Path(os.environ.get("MENGER_PROGRAM", ROOT / "build/release/menger")).resolve()
PATIENCE_S = 120

# Enough to train, evaluate and save a policy; nothing is learned.
QUICK = "--set steps=512 --set collector.environments=8 --set collector.horizon=32 --set evaluation.episodes=1"


def missing(*modules):
    return [module for module in modules if importlib.util.find_spec(module) is None]


class Workplace(unittest.TestCase):
    """Tests that share a folder: the program is at build/release there, and a Python environment of one's own beside."""

    @classmethod
    def setUpClass(cls):
        if missing("gymnasium", "numpy"):
            raise unittest.SkipTest(f"{sys.executable} lacks gymnasium: pip install -r tools/requirements_test.txt")
        folder = tempfile.TemporaryDirectory(prefix="menger_documents_")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "build").mkdir()
        (cls.folder / "build/release").symlink_to(PROGRAM.parent)
        for name in ("src", "python"):
            (cls.folder / name).symlink_to(ROOT / name)
        shutil.copy(HERE / "my_module.py", cls.folder)
        cls.trained = set()

    def environment(self):
        changed = {"PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.folder),
                   "PYTHONPATH": "python", "MENGER_PYTHON": sys.executable, "XDG_RUNTIME_DIR": str(self.folder),
                   "MENGER_RUNTIME_LIBRARY": str(PROGRAM.parent / "libmenger_runtime.so"),
                   "MENGER_REPLAY_LIBRARY": str(PROGRAM.parent / "libmenger_replay.so")}  # fmt: skip
        return {**os.environ, **changed}

    def run_line(self, line, status=0):
        """What a line of shell says; it must end with the status."""
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, status, f"`{line}` says:\n{done.stdout}")
        return done.stdout

    def have_run(self, name):
        """A run of the name that documents use. What Pong shows takes long to learn, so that one plays something small."""
        if name in self.trained:
            return
        recipe = "mine.toml" if name.startswith("pong") else name.rsplit("-", 1)[0]
        (self.folder / "mine.toml").write_text('environment = "my_module:MyEnvironment"\nalgorithm = "ppo"\n')
        self.run_line(f"menger train {recipe} {QUICK} --out runs/{name}")
        self.trained.add(name)

    @contextlib.contextmanager
    def job(self):
        """A job of the runtime, to be looked at."""
        job = subprocess.Popen([PROGRAM, "train", "cartpole_es", "--set", "steps=1000000000000", "--out", "job"], cwd=self.folder,
                               env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                asked = subprocess.run([PROGRAM, "status", "--json"], env=self.environment(), capture_output=True, text=True,
                                       timeout=PATIENCE_S, check=False)
                if asked.returncode == 0 and json.loads(asked.stdout)["tasks"]["finished"] > 0:
                    break
                self.assertLess(time.monotonic(), deadline, asked.stderr)
                time.sleep(0.01)
            yield job
        finally:
            job.kill()
            job.wait(PATIENCE_S)
