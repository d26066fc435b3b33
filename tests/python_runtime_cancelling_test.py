"""Tasks of menger.runtime that are cancelled: before they run, while they do, and while they wait."""

import os
import pathlib
import tempfile
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray


def setUpModule():
    check_library()
    ray.init(num_cpus=2)


tearDownModule = ray.shutdown


@ray.remote
def add(x, y=1):
    return x + y


@ray.remote
def sleep(seconds, path=None):
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            time.sleep(0.01)
    except KeyboardInterrupt:
        pathlib.Path(path).write_text("interrupted")
        raise
    return seconds


class Cancelling(unittest.TestCase):
    def test_what_runs_is_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "told")
            reference = sleep.remote(60, path)
            while ray.wait([reference], timeout=0.3)[0]:
                self.fail("it has not waited")
            ray.cancel(reference)
            with self.assertRaises(ray.exceptions.TaskCancelledError):
                get(reference)
            end = time.monotonic() + PATIENCE_S
            while not os.path.exists(path) and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(pathlib.Path(path).read_text(), "interrupted")

    def test_what_waits_for_another_is_interrupted_once(self):
        @ray.remote
        def waits(how, path):
            nested = sleep.remote(5)
            try:
                ray.get(nested) if how == "get" else ray.wait([nested])
            except BaseException as error:
                try:
                    time.sleep(0.5)  # It cleans up, and is not disturbed.
                    pathlib.Path(path).write_text(type(error).__name__)
                except BaseException as another:
                    pathlib.Path(path).write_text(f"{type(error).__name__}, then {type(another).__name__}")

        for how in ("get", "wait"):
            with self.subTest(how), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "told")
                reference = waits.remote(how, str(path))
                time.sleep(0.5)
                ray.cancel(reference, recursive=False)
                with self.assertRaises(ray.exceptions.TaskCancelledError):
                    get(reference)
                end = time.monotonic() + PATIENCE_S
                while not (path.exists() and path.read_text()) and time.monotonic() < end:
                    time.sleep(0.02)
                self.assertEqual(path.read_text(), "KeyboardInterrupt")

    def test_by_force(self):
        @ray.remote
        def stubborn():
            while True:
                try:
                    time.sleep(100)
                except BaseException:
                    pass

        reference = stubborn.remote()
        time.sleep(0.2)
        ray.cancel(reference, force=True)
        with self.assertRaises(ray.exceptions.TaskCancelledError):
            get(reference)
        self.assertEqual(get([add.remote(i) for i in range(20)]), list(range(1, 21)))

    def test_what_waits_never_runs(self):
        first = sleep.remote(0.3)
        waiting = add.remote(first)
        ray.cancel(waiting)
        with self.assertRaises(ray.exceptions.TaskCancelledError):
            get(waiting)
        self.assertEqual(get(first), 0.3)


if __name__ == "__main__":
    unittest.main()
