"""Whole programs of menger.runtime in a cluster: what they have on its nodes, and what they see of what workers print."""

import contextlib
import json
import os
import pathlib
import re
import socket
import tempfile
import time
import unittest

from python_runtime import PATIENCE_S, check_library
from python_runtime_nodes import Nodes, run_program

NODES = []


def setUpModule():
    check_library()
    NODES.append(Nodes())


def tearDownModule():
    for nodes in NODES:
        nodes.end()
        nodes.folder.cleanup()


class Programs(unittest.TestCase):
    def test_a_program_has_its_modules_wherever_it_was_started(self):
        with tempfile.TemporaryDirectory() as scripts, tempfile.TemporaryDirectory() as elsewhere:
            pathlib.Path(scripts, "beside.py").write_text("def triple(x):\n    return 3 * x\n")
            done = run_program(
                NODES[0].address,
                "import json, os, sys\n"
                "import menger.runtime as ray\n"
                "import beside\n"
                "ray.init()\n"
                "@ray.remote\n"
                "def called(x):\n"
                "    return beside.triple(x), os.getcwd(), own(x)\n"
                "def own(x):\n"
                "    return -x\n"
                "print(json.dumps(ray.get(called.remote(2), timeout=60)))\n",
                scripts,
                elsewhere,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), [6, os.path.realpath(elsewhere), -2])


class Output(unittest.TestCase):
    PROGRAM = """
import os, sys, time
import menger.runtime as ray
ray.init({options})

@ray.remote(resources={{"second": 1}})
def speak(x):
    print("hello", x)
    print("oops", file=sys.stderr)

@ray.remote(resources={{"first": 1}}, max_retries=0)
def die():
    os.system("echo from a child")
    print("last words", flush=True)
    os._exit(3)

@ray.remote
class Press:
    def say(self):
        print("y" * 10_000)

ray.get(speak.remote(1), timeout=60)
press = Press.options(resources={{"second": 1}}).remote()
ray.get(press.say.remote(), timeout=60)
try:
    ray.get(die.remote(), timeout=60)
except ray.exceptions.WorkerCrashedError as error:
    print(error)
"""

    def run_it(self, options):
        with tempfile.TemporaryDirectory() as folder:
            done = run_program(NODES[0].address, self.PROGRAM.format(options=options), folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"worker \d+, process \d+, node [0-9a-f]{8}: its worker ended with exit status 3")
        return done

    def test_forks_of_a_program_end_without_it(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run_program(
                NODES[0].address,
                "import os, sys\n"
                "import numpy as np\n"
                "import menger.runtime as ray\n"
                "ray.init()\n"
                "@ray.remote\n"
                "def ramp(count):\n"
                "    return np.arange(count)\n"
                "array = ray.get(ramp.remote(100_000))\n"
                "for again in (False, True):\n"
                "    child = os.fork()\n"
                "    if child == 0:\n"
                "        if again:\n"
                "            ray.shutdown()\n"
                "            ray.init()\n"
                "            assert len(ray.get(ramp.remote(70_000))) == 70_000\n"
                "        sys.exit(3 if array[-1] == 99_999 else 4)\n"
                "    print(os.WEXITSTATUS(os.waitpid(child, 0)[1]), len(ray.get(ramp.remote(80_000), timeout=30)))\n",
                folder,
            )
            self.assertEqual((done.stdout, done.returncode), ("3 80000\n3 80000\n", 0), done.stderr)

    def test_what_workers_print_is_seen_in_the_program_alone(self):
        done = self.run_it("")
        out, err = done.stdout.splitlines(), done.stderr.splitlines()
        for pattern in (r"\(speak pid=\d+, node=second\) hello 1", r"\(Press pid=\d+, node=second\) y{10000}"):
            self.assertEqual(len([line for line in out if re.fullmatch(pattern, line)]), 1, out)
        self.assertTrue(any(re.fullmatch(r"\(die pid=\d+, node=[0-9a-f]{8}\) last words", line) for line in out), out)
        self.assertTrue(any(re.fullmatch(r"\(speak pid=\d+, node=second\) oops", line) for line in err), err)
        self.assertTrue(any(re.fullmatch(r"\(worker pid=\d+, node=[0-9a-f]{8}\) from a child", line) for line in err), err)
        log = pathlib.Path(NODES[0].log).read_text()
        self.assertIn("head of a cluster", log)
        for text in ("hello", "yyy", "last words", "oops", "from a child"):
            self.assertNotIn(text, log)

    def test_nothing_is_seen_where_it_is_switched_off(self):
        done = self.run_it("log_to_driver=False")
        for text in ("hello", "yyy", "last words", "oops", "from a child"):
            self.assertNotIn(text, done.stdout + done.stderr)

    def test_who_prints_without_end_keeps_no_call_waiting(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run_program(
                NODES[0].address,
                "import menger.runtime as ray\n"
                "ray.init()\n"
                "@ray.remote(resources={'second': 1})\n"
                "def flood():\n"
                "    while True:\n"
                "        print('x' * 99)\n"
                "@ray.remote(resources={'second': 1})\n"
                "def one():\n"
                "    return 1\n"
                "flood = flood.remote()\n"
                "done = sum(ray.get(one.remote(), timeout=60) for _ in range(50))\n"
                "print(f'done {done}')\n"
                "ray.cancel(flood, force=True)\n",
                folder,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("done 50", done.stdout)  # Written at once, but lines may come before its end.

    def test_a_node_says_whom_it_turned_away_but_not_of_all(self):
        def turned_away():
            return [line for line in pathlib.Path(NODES[0].log).read_text().splitlines() if " was turned away: " in line]

        before, many = len(turned_away()), 60
        host, port = NODES[0].address.split(":")
        for _ in range(many):
            with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as stranger:
                stranger.sendall(b"GET / HTTP/1.0\r\n" * 8)
                with contextlib.suppress(ConnectionResetError):
                    while stranger.recv(4096):
                        pass
        end = time.monotonic() + PATIENCE_S
        while not turned_away() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertRegex(turned_away()[-1], r"who connected from 127\.0\.0\.1:\d+ was turned away: .+")
        self.assertLess(len(turned_away()) - before, many / 2)


if __name__ == "__main__":
    unittest.main()
