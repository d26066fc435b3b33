"""The example of the Ray paper, unchanged, on four nodes of which one dies and comes back."""

import os
import subprocess
import sys
import threading
import time
import unittest

from python_runtime import PATIENCE_S, ROOT, check_library
from python_runtime_nodes import PROGRAM, Nodes

NODES = []
RUNS = 2


def setUpModule():
    check_library()
    NODES.append(Nodes())
    for name in ("third", "fourth"):
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--name", name)


def tearDownModule():
    for nodes in NODES:
        nodes.end()
        nodes.folder.cleanup()


class Dying:
    """While it is entered the last node is killed and begun again, over and over."""

    def __enter__(self):
        self.over, self.deaths = threading.Event(), 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        while not self.over.wait(0.3):
            dying = NODES[0].processes.pop()
            dying.kill()
            dying.wait()
            dying.stdout.close()
            self.deaths += 1
            NODES[0].begin("--join", NODES[0].address, "--cpus", "1")

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class ExamplesTest(unittest.TestCase):
    def run_often(self, command):
        variables = {**os.environ, "MENGER_ADDRESS": NODES[0].address, "PYTHONPATH": str(ROOT / "python")}
        with Dying() as dying:
            end = time.monotonic() + PATIENCE_S
            for run in range(1000):
                done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("the pole stands for", done.stdout)
                if run >= RUNS and dying.deaths > 1 or time.monotonic() > end:
                    break
        self.assertGreater(dying.deaths, 1)

    def test_in_python(self):
        self.run_often([sys.executable, ROOT / "examples" / "ray_paper.py"])

    def test_in_cpp(self):
        self.run_often([PROGRAM.parent / "examples" / "example_ray_paper"])


if __name__ == "__main__":
    unittest.main()
