"""Programs whose workers meet functions, failures and deaths in orders that a driver does not choose."""

import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray


def setUpModule():
    check_library()
    ray.init(num_cpus=4)


tearDownModule = ray.shutdown


def strikes(path):
    """How often this was called for that file, this time included."""
    with open(path, "a") as file:
        file.write("x")
    return os.path.getsize(path)


class Retries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def functions(self):
        """New functions each time: nobody has met them."""

        @ray.remote
        def inner():
            return 42

        @ray.remote(max_retries=3, retry_exceptions=True)
        def outer(path, dies):
            value = ray.get(inner.remote())
            if strikes(path) == 1:
                if dies:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("the first run fails")
            return value

        return inner, outer

    def test_a_further_run_gets_what_it_calls_whoever_met_that_first(self):
        for dies in (False, True):
            for driver_first in (False, True):
                with self.subTest(dies=dies, driver_first=driver_first):
                    inner, outer = self.functions()
                    if driver_first:
                        self.assertEqual(get(inner.remote()), 42)
                    self.assertEqual(get(outer.remote(self.path(f"{dies} {driver_first}"), dies)), 42)

    def test_crashes_at_any_moment_mix_up_nothing(self):
        folder = self.folder.name

        @ray.remote
        def times(x, y):
            return x * y

        @ray.remote
        def plus(x, y):
            return x + y

        @ray.remote(max_retries=5)
        def outer(number):
            path = f"{folder}/{number}"
            first = times if strikes(path) % 2 == number % 2 else plus  # Each run meets them in another order.
            ray.get(first.remote(1, 1))
            kept = ray.put(number)
            if strikes(path) < 3 + number % 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return ray.get(plus.remote(times.remote(kept, 10), 1))

        self.assertEqual(get([outer.remote(i) for i in range(20)]), [10 * i + 1 for i in range(20)])

    def test_a_retry_gets_past_a_nested_failure(self):
        @ray.remote
        def flaky(path):
            if strikes(path) < 3:
                raise ConnectionError("not yet")
            return "there"

        @ray.remote(max_retries=2, retry_exceptions=True)
        def outer(path):
            return ray.get(flaky.remote(path))

        path = self.path("flaky")
        self.assertEqual(get(outer.remote(path)), "there")
        self.assertEqual(os.path.getsize(path), 3)

    def test_only_listed_exceptions_are_tried_again(self):
        class Unlisted(Exception):
            pass

        @ray.remote(max_retries=5, retry_exceptions=[ConnectionError, KeyError])
        def once(path, error):
            if strikes(path) < 3:
                raise error
            return "there"

        self.assertEqual(get(once.remote(self.path("listed"), ConnectionResetError("no"))), "there")
        self.assertEqual(get(once.remote(self.path("key"), KeyError("no"))), "there")
        for error in (ValueError("no"), Unlisted("no")):
            path = self.path(type(error).__name__)
            with self.assertRaises(type(error)):
                get(once.remote(path, error))
            self.assertEqual(os.path.getsize(path), 1)
        # The cause of a nested failure counts as the exception.
        path = self.path("nested")

        @ray.remote(max_retries=5, retry_exceptions=(OSError,))
        def outer(path):
            return ray.get(once.options(max_retries=0, retry_exceptions=False).remote(path, ConnectionError("no")))

        self.assertEqual(get(outer.remote(path)), "there")

    def test_what_cannot_be_a_list_of_exceptions_is_refused(self):
        for wrong in (1, "ValueError", [ValueError("no")], [int]):
            with self.assertRaisesRegex(ValueError, "retry_exceptions is .* must be"):
                ray.remote(retry_exceptions=wrong)(len)

    def test_the_same_function_is_stored_once_whoever_defines_it(self):
        @ray.remote
        def inner():
            return 1

        @ray.remote
        def outer(others):
            return ray.get(inner.remote()) + (ray.get(outer.remote(others - 1)) if others else 0)

        self.assertEqual(get([outer.remote(3) for _ in range(5)]), [4] * 5)


class Cancelling(unittest.TestCase):
    def test_reaches_the_calls_that_a_call_has_made(self):
        with tempfile.TemporaryDirectory() as folder:

            @ray.remote
            def leaf(number):
                pathlib.Path(f"{folder}/{number}.begun").touch()
                try:
                    time.sleep(PATIENCE_S)
                except KeyboardInterrupt:
                    pathlib.Path(f"{folder}/{number}.interrupted").touch()
                    raise

            @ray.remote
            def tree(number):
                return ray.get([leaf.remote(2 * number), leaf.remote(2 * number + 1)])

            @ray.remote
            def root():
                return ray.get([tree.remote(0), tree.remote(1)])

            def wait_for(suffix, count):
                end = time.monotonic() + PATIENCE_S
                while len(list(pathlib.Path(folder).glob(f"*.{suffix}"))) < count and time.monotonic() < end:
                    time.sleep(0.02)
                return len(list(pathlib.Path(folder).glob(f"*.{suffix}")))

            result = root.remote()
            self.assertEqual(wait_for("begun", 4), 4)
            ray.cancel(result)
            with self.assertRaises(ray.exceptions.TaskCancelledError):
                get(result)
            self.assertEqual(wait_for("interrupted", 4), 4)


@ray.remote(max_restarts=3)
class Leaves:
    def __init__(self, status=1):
        if status == 0:
            sys.exit(status)

    def leave(self, status):
        sys.exit(status)

    def live(self):
        return True


@ray.remote(max_restarts=3)
class LeavesALoop:
    async def leave(self, status):
        sys.exit(status)

    async def live(self):
        return True


class Exits(unittest.TestCase):
    def test_with_status_0_are_the_end_of_an_actor(self):
        for kind in (Leaves, Leaves.options(max_concurrency=2), LeavesALoop):
            for status in (None, 0):
                actor = kind.remote()
                self.assertTrue(get(actor.live.remote()))
                with self.assertRaises(ray.exceptions.ActorDiedError):
                    get(actor.leave.remote(status))
                with self.assertRaises(ray.exceptions.ActorDiedError):
                    get(actor.live.remote())
        with self.assertRaises(ray.exceptions.ActorDiedError):
            get(Leaves.remote(0).live.remote())

    def test_with_another_status_are_a_crash(self):
        for kind in (Leaves, LeavesALoop):
            actor = kind.remote()
            with self.assertRaises(ray.exceptions.ActorUnavailableError):
                get(actor.leave.remote(3))
            self.assertTrue(get(actor.live.remote()))


if __name__ == "__main__":
    sys.exit(unittest.main())
