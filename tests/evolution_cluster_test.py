"""Evolution Strategies on a cluster: what is learned is the same on any number of nodes and workers, also if a node dies meanwhile."""

import csv
import json
import os
import pathlib
import subprocess
import time
import unittest

from python_runtime import PATIENCE_S
from python_runtime_nodes import PROGRAM, Nodes

STEPS = 10_000_000
TIMES = ("seconds", "_seconds")


class EvolutionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes()
        for number in (2, 3):
            cls.nodes.begin("--join", cls.nodes.address, "--cpus", "1", "--name", f"node {number}")

    @classmethod
    def tearDownClass(cls):
        cls.nodes.end()
        cls.nodes.folder.cleanup()

    def folder(self, name):
        return pathlib.Path(self.nodes.folder.name, name)

    def begin(self, name, workers, address):
        settings = {"steps": STEPS, "runtime.workers": workers, "runtime.isolation": "process"}
        command = [PROGRAM, "train", "cartpole_es", "--quiet", "--out", self.folder(name)]
        for option, value in settings.items():
            command += ["--set", f"{option}={value}"]
        return subprocess.Popen(command, env={**os.environ, "MENGER_ADDRESS": address}, stderr=subprocess.PIPE, text=True)

    def learned(self, name):
        """All that the run has written at each update but what it took."""
        with open(self.folder(name) / "progress.csv", newline="") as file:
            return [{key: value for key, value in row.items() if not key.endswith(TIMES)} for row in csv.DictReader(file)]

    def trained(self, name, workers, address):
        run = self.begin(name, workers, address)
        _, errors = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, errors)
        return self.learned(name)

    def busiest(self):
        """The process of the node, but for the head, that has done most calls; of those that answer in time."""
        command = [PROGRAM, "status", "--address", self.nodes.address, "--json"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        answers = [each["status"] for each in json.loads(asked.stdout)["nodes"] if "status" in each]
        calls = {status["process"]: status["calls_for_others"] for status in answers}
        return max(self.nodes.processes[1:], key=lambda process: calls.get(process.pid, -1))

    def test_all_learn_the_same(self):
        alone = self.trained("alone", 1, "local")
        self.assertGreater(len(alone), 20)
        self.assertEqual(self.trained("two", 2, self.nodes.address), alone)
        self.assertEqual(self.trained("seven", 7, self.nodes.address), alone)

        run = self.begin("killed", 5, self.nodes.address)
        end = time.monotonic() + PATIENCE_S
        progress = self.folder("killed") / "progress.csv"
        while not progress.exists() or len(self.learned("killed")) < 3:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        node = self.busiest()
        self.nodes.processes.remove(node)
        node.kill()
        node.wait()
        node.stdout.close()
        _, errors = run.communicate(timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, errors)
        self.assertIn("is gone", errors)
        self.assertEqual(self.learned("killed"), alone)


if __name__ == "__main__":
    unittest.main()
