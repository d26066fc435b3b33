"""What tests of menger.replay share."""

import os
import pathlib
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))
if "MENGER_PROGRAM" in os.environ:
    built = pathlib.Path(os.environ["MENGER_PROGRAM"]).resolve().parent / "libmenger_replay.so"
    os.environ.setdefault("MENGER_REPLAY_LIBRARY", str(built))

import menger.replay as reverb  # noqa: E402

PATIENCE_S = 60


def check_library():
    if not os.path.exists(os.environ.get("MENGER_REPLAY_LIBRARY", __file__)):
        raise unittest.SkipTest("this build has no libmenger_replay.so: an instrumented one cannot be loaded by Python")


def uniform(name="table", max_size=100, signature=None, min_size=1):
    return reverb.Table(
        name=name,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=max_size,
        rate_limiter=reverb.rate_limiters.MinSize(min_size),
        signature=signature,
    )


def python(program, *arguments):
    """A process that runs this program, with menger.replay as `reverb`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    text = "import sys\nimport numpy as np\nimport menger.replay as reverb\n" + program
    return subprocess.Popen([sys.executable, "-c", text, *map(str, arguments)], env=environment, stdout=subprocess.PIPE, text=True)


def output(process):
    said, _ = process.communicate(timeout=PATIENCE_S)
    if process.returncode != 0:
        raise AssertionError(f"it ended with {process.returncode}")
    return said


class Later:
    """A call in a thread of its own; `result` waits for what it gives."""

    def __init__(self, function, *arguments):
        self._found = []
        self._thread = threading.Thread(target=lambda: self._found.append(function(*arguments)), daemon=True)
        self._thread.start()

    @property
    def done(self):
        return bool(self._found)

    def result(self):
        self._thread.join(PATIENCE_S)
        return self._found[0]


class ReplayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        check_library()

    def serve(self, *tables, **options):
        server = reverb.Server(list(tables), **options)
        self.addCleanup(server.stop)
        return server.localhost_client()
