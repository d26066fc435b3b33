"""Whole Python programs on menger.runtime, in interpreters of their own."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from python_runtime import PATIENCE_S, ROOT, check_library, ray


def setUpModule():
    check_library()


class Programs(unittest.TestCase):
    def run_program(self, text, *, expect=0, cwd=None):
        program = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\nimport menger.runtime as ray\n{text}"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, cwd=cwd, check=False
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def test_output_of_workers_is_shown_with_its_name(self):
        done = self.run_program(
            """
import sys, time
@ray.remote
def speak():
    print("hello")
    print("careful", file=sys.stderr)
ray.get(speak.remote())
time.sleep(.3)
ray.shutdown()
"""
        )
        self.assertRegex(done.stdout, r"(?m)^\(speak pid=\d+\) hello$")
        self.assertRegex(done.stderr, r"(?m)^\(speak pid=\d+\) careful$")

    def test_threads_that_call_first_open_one_runtime(self):
        done = self.run_program(
            """
import threading
function = ray.remote(lambda: 1)
start, references = threading.Barrier(8), []
def call():
    start.wait()
    references.append(function.remote())
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(ray.get(references)))
"""
        )
        self.assertEqual(done.stdout, "8\n")

    def test_output_without_the_end_of_its_line_is_shown_when_the_call_ends(self):
        done = self.run_program(
            """
import time
@ray.remote
class Teller:
    def tell(self):
        print("a word", end="")
teller = Teller.remote()
ray.get(teller.tell.remote())
time.sleep(.3)
ray.kill(teller)
ray.shutdown()
"""
        )
        self.assertRegex(done.stdout, r"(?m)^\(Teller pid=\d+\) a word$")

    def test_a_long_line_stays_one_line_of_its_stream(self):
        done = self.run_program(
            """
import sys, time
@ray.remote
def speak():
    for letter in "abc":
        print(letter * 5000)
    print("\u00e9" * 5000, file=sys.stderr)
    print("x" * 2_500_000)
    print("end")
ray.get(speak.remote())
time.sleep(.5)
ray.shutdown()
"""
        )
        lines = [re.fullmatch(r"\(speak pid=\d+\) (.*)", line)[1] for line in done.stdout.splitlines()]
        self.assertEqual(lines[:3], ["a" * 5000, "b" * 5000, "c" * 5000])
        self.assertEqual((len("".join(lines[3:-1])), lines[-1]), (2_500_000, "end"))
        self.assertLess(len(lines), 8)  # More than a million letters are shown as several lines.
        self.assertRegex(done.stderr, r"^\(speak pid=\d+\) \u00e9{5000}\n$")

    def test_long_lines_of_several_writers_at_once_stay_apart(self):
        done = self.run_program(
            """
import os, sys, threading, time
@ray.remote
def speak():
    def say(letter, stream):
        for _ in range(20):
            print(letter * 50_000, file=stream)
    def call():
        for _ in range(200):
            os.write(2, b"raw\\n")
    threads = [threading.Thread(target=say, args=each) for each in (("o", sys.stdout), ("e", sys.stderr))]
    threads.append(threading.Thread(target=call))
    for each in threads:
        each.start()
    for each in threads:
        each.join()
ray.get(speak.remote())
time.sleep(.5)
ray.shutdown()
"""
        )
        spoken = re.compile(r"(?m)^\((\w+) pid=\d+\) (.*)$")
        self.assertEqual(spoken.findall(done.stdout), [("speak", "o" * 50_000)] * 20)
        self.assertEqual(sorted(spoken.findall(done.stderr)), [("speak", "e" * 50_000)] * 20 + [("worker", "raw")] * 200)

    def test_output_that_nobody_reads_any_longer_is_dropped_without_a_word(self):
        program = f"""
import sys, time; sys.path.insert(0, {str(ROOT / "python")!r})
import menger.runtime as ray
@ray.remote
def speak():
    for i in range(500):
        print(i)
    print("careful", file=sys.stderr)
ray.get(speak.remote())
time.sleep(.3)
ray.shutdown()
"""
        read, write = os.pipe()
        os.close(read)
        with open(write, "wb") as closed:
            done = subprocess.run([sys.executable, "-c", program], stdout=closed, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        self.assertRegex(done.stderr, r"(?m)^\(speak pid=\d+\) careful$")
        self.assertLess(len(done.stderr.splitlines()), 10, done.stderr[:1000])

    def test_a_folder_for_temporary_files_that_is_none_is_named(self):
        done = self.run_program(
            """
import os
os.environ.pop("XDG_RUNTIME_DIR", None)
os.environ["TMPDIR"] = "/does/not/exist"
try:
    ray.init(num_cpus=1)
except Exception as error:
    print(error)
"""
        )
        self.assertIn("'/does/not/exist' (TMPDIR), is none", done.stdout + done.stderr)

    def test_a_stream_that_does_not_know_a_letter_shows_the_others(self):
        done = self.run_program(
            """
import io, time
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="ascii")
@ray.remote
def speak():
    print("caf\u00e9")
    print("tea")
ray.get(speak.remote())
time.sleep(.3)
ray.shutdown()
"""
        )
        self.assertRegex(done.stdout, r"\(speak pid=\d+\) caf\\xe9\n\(speak pid=\d+\) tea\n")

    def test_what_is_logged_says_who_logs(self):
        done = self.run_program(
            """
import logging, time
from menger.runtime import LoggingConfig
ray.shutdown()
ray.init(num_cpus=1, logging_config=LoggingConfig(encoding="JSON", additional_log_standard_attrs=["name"]))
@ray.remote
def speak():
    logging.getLogger("speaker").info("hello")
ray.get(speak.remote())
time.sleep(.3)
ray.shutdown()
"""
        )
        line = json.loads(re.search(r"\(speak pid=\d+\) (.*hello.*)", done.stderr)[1])
        self.assertEqual((line["message"], line["name"], line["task_name"]), ("hello", "speaker", "speak"))

    def test_a_logging_config_that_cannot_be(self):
        with self.assertRaisesRegex(ValueError, "Invalid encoding type: 'XML'"):
            ray.LoggingConfig(encoding="XML")

    def test_output_may_be_hidden(self):
        done = self.run_program(
            """
ray.init(log_to_driver=False)
@ray.remote
def speak():
    print("hello")
ray.get(speak.remote())
"""
        )
        self.assertEqual(done.stdout + done.stderr, "")

    def test_init_and_shutdown(self):
        self.run_program(
            """
assert not ray.is_initialized()
ray.init(num_cpus=1)
try:
    ray.init()
    assert False
except RuntimeError:
    pass
ray.init(ignore_reinit_error=True)
@ray.remote
def f():
    return 1
assert ray.get(f.remote()) == 1
assert ray.cluster_resources()["CPU"] == 1
kept = f.remote()
import numpy as np
array = ray.get(ray.put(np.ones(1_000_000)))
ray.shutdown()
assert array.sum() == 1_000_000
assert not ray.is_initialized()
assert ray.get(f.remote()) == 1  # Opens it again.
assert ray.is_initialized()
del kept
ray.shutdown()
ray.shutdown()
"""
        )

    def test_modules_in_the_working_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "beside.py").write_text("def seven():\n    return 7\n")
            self.run_program(
                f"""
import json
import os
ray.init(runtime_env={{"working_dir": {folder!r}}})
@ray.remote
def f():
    import beside
    return beside.seven(), os.getcwd()
assert ray.get(f.remote()) == (7, os.path.realpath({folder!r}))
"""
            )

    def test_shutdown_while_others_wait(self):
        self.run_program(
            """
import threading, time
@ray.remote
def f():
    time.sleep(600)
def wait():
    try:
        ray.get(reference)
    except ray.exceptions.RaySystemError:
        print("told")
reference = f.remote()
future = reference.future()
thread = threading.Thread(target=wait)
thread.start()
time.sleep(.2)
ray.shutdown()
thread.join()
"""
        )

    def test_control_c_reaches_a_program_that_waits(self):
        with self.started(
            "@ray.remote\ndef f():\n    import time; time.sleep(600)\n"
            "r = f.remote()\nprint('waits', flush=True)\ntry:\n    ray.get(r)\nexcept KeyboardInterrupt:\n    print('heard')\n"
        ) as process:
            self.assertEqual(process.stdout.readline(), "waits\n")
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=PATIENCE_S)[0], "heard\n")

    def test_nothing_is_left_of_a_driver_that_is_killed(self):
        with self.started(
            "import os, time, numpy as np\nray.init(num_cpus=2)\n"
            "@ray.remote\nclass A:\n    def process(self):\n        return os.getpid()\n"
            "@ray.remote\ndef f():\n    time.sleep(600)\n"
            "a = [A.remote() for _ in range(3)]\nheld = ray.put(np.zeros(10_000_000))\nr = f.remote()\n"
            "print(*ray.get([x.process.remote() for x in a]), flush=True)\ntime.sleep(600)\n"
        ) as process:
            workers = [int(word) for word in process.stdout.readline().split()]
            self.assertEqual(len(workers), 3)
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            process.kill()
            process.wait()
            end = time.monotonic() + PATIENCE_S
            while any(map(alive, workers)) and time.monotonic() < end:
                time.sleep(0.02)
            self.assertFalse(any(map(alive, workers)), "a worker has outlived its driver")
            self.assertFalse(children.exists())
            self.assertEqual([each for each in os.listdir("/dev/shm") if "menger" in each], [])

    def started(self, text):
        program = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\nimport menger.runtime as ray\n{text}"
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
