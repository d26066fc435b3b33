"""Tasks of menger.runtime that are cancelled: before they run, while they do, and while they wait."""

import asyncio
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
        if path:
            pathlib.Path(path).write_text("begun")
        while time.monotonic() < end:
            time.sleep(0.01)
    except KeyboardInterrupt:
        pathlib.Path(path).write_text("interrupted")
        raise
    return seconds


class SlowToLoad:
    def __init__(self, path):
        self.path = path

    def __setstate__(self, state):
        self.path = state["path"]
        pathlib.Path(self.path).write_text("loads")
        end = time.monotonic() + 1
        while time.monotonic() < end:
            time.sleep(0.01)
        pathlib.Path(self.path).write_text("loaded")


@ray.remote
class Sleeper:
    def __init__(self):
        self.begun = self.cancelled = 0

    async def sleep(self, goes_on=False):
        self.begun += 1
        try:
            await asyncio.sleep(PATIENCE_S)
        except asyncio.CancelledError:
            self.cancelled += 1
            if not goes_on:
                raise

    async def seen(self):
        return self.begun, self.cancelled


@ray.remote(max_concurrency=2)
class Asker:
    def __init__(self):
        self.begun = False

    def run(self):
        self.begun = True
        end = time.monotonic() + PATIENCE_S
        while not ray.get_runtime_context().is_canceled() and time.monotonic() < end:
            time.sleep(0.01)
        self.ended = time.monotonic() < end

    def wait(self, gate):
        self.begun = ray.get(gate.wait.remote())
        self.ended = ray.get_runtime_context().is_canceled()

    def seen(self):
        return self.begun, getattr(self, "ended", None)


@ray.remote
class Gate:
    def __init__(self):
        self.opened, self.waiting = asyncio.Event(), 0

    async def wait(self):
        self.waiting += 1
        await self.opened.wait()
        return "open"

    async def open(self):
        self.opened.set()

    async def waits(self):
        return self.waiting


@ray.remote
class Nester:
    def __init__(self):
        self.calls = {}

    async def run(self, which, gate):
        self.calls[which] = gate.wait.remote()
        await self.calls[which]

    async def nested(self, which):
        return [self.calls[which]]

    async def ask(self):
        return ray.get_runtime_context().is_canceled()


def wait_for(method, expected):
    end = time.monotonic() + PATIENCE_S
    while get(method.remote()) != expected:
        if time.monotonic() > end:
            raise AssertionError(f"it never was {expected}")
        time.sleep(0.01)


class Cancelling(unittest.TestCase):
    def test_a_coroutine_is_cancelled_and_no_other(self):
        actor = Sleeper.remote()
        one, other, stubborn = actor.sleep.remote(), actor.sleep.remote(), actor.sleep.remote(goes_on=True)
        wait_for(actor.seen, (3, 0))
        ray.cancel(one)
        ray.cancel(stubborn)
        for cancelled in (one, stubborn):
            with self.assertRaises(ray.exceptions.TaskCancelledError):
                get(cancelled)
        wait_for(actor.seen, (3, 2))
        self.assertEqual(ray.wait([other], timeout=0.3)[0], [])

    def test_a_method_beside_others_may_ask(self):
        actor = Asker.remote()
        reference = actor.run.remote()
        wait_for(actor.seen, (True, None))
        ray.cancel(reference)
        wait_for(actor.seen, (True, True))

    def test_a_method_is_not_interrupted_while_it_waits(self):
        actor, gate = Asker.options(max_concurrency=1).remote(), Gate.remote()
        reference = actor.wait.remote(gate)
        end = time.monotonic() + PATIENCE_S
        while get(gate.waits.remote()) == 0 and time.monotonic() < end:
            time.sleep(0.01)
        ray.cancel(reference, recursive=False)
        with self.assertRaisesRegex(ray.exceptions.TaskCancelledError, reference.task_id().hex()):
            get(reference)
        get(gate.open.remote())
        self.assertEqual(get(actor.seen.remote()), ("open", True))

    def test_what_coroutines_have_called_goes_with_them(self):
        actor, gate = Nester.remote(), Gate.remote()
        one, other = (actor.run.remote(which, gate) for which in ("one", "other"))
        end = time.monotonic() + PATIENCE_S
        while get(gate.waits.remote()) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        ray.cancel(one)
        ray.cancel(other, recursive=False)
        for each in (one, other, get(actor.nested.remote("one"))[0]):
            with self.assertRaises(ray.exceptions.TaskCancelledError):
                get(each)
        get(gate.open.remote())
        self.assertEqual(get(get(actor.nested.remote("other"))[0]), "open")

    def test_coroutines_cannot_ask(self):
        with self.assertRaisesRegex(RuntimeError, "not supported in an async actor"):
            get(Nester.remote().ask.remote())

    def test_what_runs_is_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "told")
            reference = sleep.remote(60, path)
            told = pathlib.Path(path)
            end = time.monotonic() + PATIENCE_S
            # What is cancelled before its worker has begun it does not run at all.
            while not (told.exists() and told.read_text() == "begun") and time.monotonic() < end:
                time.sleep(0.02)
            ray.cancel(reference)
            with self.assertRaises(ray.exceptions.TaskCancelledError):
                get(reference)
            while told.read_text() != "interrupted" and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(told.read_text(), "interrupted")

    # It may import modules, which later calls of the process would find half imported.
    def test_what_a_call_is_given_is_loaded_to_the_end(self):
        @ray.remote
        def use(_slow):
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                time.sleep(0.01)

        with tempfile.TemporaryDirectory() as folder:
            told = pathlib.Path(folder, "told")
            reference = use.remote(SlowToLoad(told))
            end = time.monotonic() + PATIENCE_S
            while not told.exists() and time.monotonic() < end:
                time.sleep(0.02)
            ray.cancel(reference)
            with self.assertRaises(ray.exceptions.TaskCancelledError):
                get(reference)
            while told.read_text() != "loaded" and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(told.read_text(), "loaded")

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
