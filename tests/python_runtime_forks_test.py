"""Forks of Python programs that have a runtime, and what is left of a runtime that was shut down."""

import asyncio
import gc
import math
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np
from python_runtime import PATIENCE_S, ROOT, check_library, get, ray


def setUpModule():
    check_library()


@ray.remote
def square(x):
    return x * x


@ray.remote
def get_first(references):
    return ray.get(references[0])


@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self, amount):
        self.count += amount
        return self.count


@ray.remote
def factorials_by_pool(count):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(math.factorial, range(count))


@ray.remote
class Pooling:
    def factorials(self, count):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return pool.map(math.factorial, range(count))


@ray.remote(max_retries=0)
def fork_and(what):
    """The exit status of a fork, or of what it tries."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        if what == "exit":
            sys.exit(7)
        if what == "raise":
            raise ValueError("the fork's own")
        if what == "get":
            try:
                ray.put(1)
            except ray.exceptions.RaySystemError as error:
                os._exit(7 if "is a fork" in str(error) else 8)
        return 1000
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@ray.remote(max_retries=0)
def init_and_put():
    ray.init()
    ray.shutdown()
    return ray.is_initialized(), ray.get(ray.put(5))


def status_of_fork(work):
    """What a fork exits with that does `work`."""
    child = os.fork()
    if child == 0:
        status = 98
        try:
            signal.alarm(30)
            status = work()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refusal(ask):
    """The text with which the runtime refuses."""
    try:
        ask()
    except (ray.exceptions.RaySystemError, ValueError) as error:
        return str(error)
    return "it was not refused"


class WithRuntime(unittest.TestCase):
    def setUp(self):
        ray.init(num_cpus=2)
        self.addCleanup(ray.shutdown)


class Forks(WithRuntime):
    def test_pools_of_forks_work_beside_living_actors(self):
        counter, number = Counter.remote(), ray.put(np.ones(100_000))
        array = get(number)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            self.assertEqual(pool.map(math.factorial, range(50)), [math.factorial(x) for x in range(50)])
            self.assertEqual(get(counter.add.remote(1)), 1)
            del array
        self.assertEqual(get(counter.add.remote(1)), 2)
        self.assertEqual(get(number).sum(), 100_000)

    def test_calls_and_methods_may_use_pools_of_forks(self):
        wanted = [math.factorial(x) for x in range(20)]
        self.assertEqual(get(factorials_by_pool.remote(20)), wanted)
        pooling = Pooling.remote()
        for _ in range(2):
            self.assertEqual(get(pooling.factorials.remote(20)), wanted)

    def test_a_fork_is_refused_by_name_whatever_it_asks_for(self):
        counter, number = Counter.remote(), ray.put(1)
        future = number.future()
        self.assertEqual(future.result(PATIENCE_S), 1)
        asked = [
            lambda: ray.get(number, timeout=5),
            lambda: ray.wait([number], timeout=5),
            lambda: ray.put(2),
            lambda: square.remote(2),
            lambda: square.remote(number),
            lambda: counter.add.remote(1),
            lambda: Counter.remote(),
            lambda: ray.kill(counter),
            lambda: ray.cancel(number),
            lambda: ray.get_actor("nobody"),
            lambda: number.future().result(5),
        ]
        get(square.remote(1))

        def count_allowed():
            return sum("is a fork of one that has a Runtime" not in refusal(ask) for ask in asked)

        self.assertEqual(status_of_fork(count_allowed), 0)
        self.assertEqual(get(counter.add.remote(1)), 1)

    def test_a_fork_may_open_a_runtime_of_its_own(self):
        number = ray.put(3)

        def work():
            ray.shutdown()
            ray.init(num_cpus=1)
            value = get(square.remote(3))
            ray.shutdown()
            return value

        self.assertEqual(status_of_fork(work), 9)
        self.assertEqual(get(square.remote(number)), 9)

    def test_forks_of_calls_end_as_they_like(self):
        self.assertEqual(get(fork_and.remote("exit")), 7)
        self.assertEqual(get(fork_and.remote("get")), 7)
        self.assertEqual(get(fork_and.remote("return")), 1)
        self.assertEqual(get(fork_and.remote("raise")), 1)
        self.assertEqual(get(square.remote(3)), 9)

    def test_init_inside_of_a_task_goes_on_with_the_tasks_runtime(self):
        self.assertEqual(get(init_and_put.remote()), (True, 5))


class Programs(unittest.TestCase):
    def run_program(self, text):
        """What a program prints to standard output and error; it must end with status 0."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "program.py")
            path.write_text(textwrap.dedent(text))
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
            done = subprocess.run(
                [sys.executable, path], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_a_fork_that_ends_as_programs_do_is_quiet_and_has_its_own_status(self):
        out, err = self.run_program("""
            import os, signal, sys
            import numpy as np
            import menger.runtime as ray

            @ray.remote
            class Counter:
                def add(self, amount):
                    return amount

            ray.init(num_cpus=1)
            counter, number = Counter.remote(), ray.put(np.ones(100_000))
            array, future = ray.get(number), number.future()
            future.result()
            for how in range(3):
                child = os.fork()
                if child == 0:
                    signal.alarm(30)
                    if how == 0:
                        sys.exit(7)
                    if how == 1:
                        ray.shutdown()
                        sys.exit(7)
                    del counter, number, array, future
                    sys.exit(7)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(ray.get(counter.add.remote(5)), array.sum(), ray.get(number).sum())
        """)
        self.assertEqual(out.split(), ["7", "7", "7", "5", "100000.0", "100000.0"])
        self.assertEqual(err, "")

    def test_what_a_program_keeps_until_its_end_is_dropped_quietly(self):
        out, err = self.run_program("""
            import numpy as np
            import menger.runtime as ray

            @ray.remote
            class Counter:
                def add(self, amount):
                    return amount

            class Keeps:
                def __del__(self):
                    print(self.array[99_999])

            keeps = Keeps()
            keeps.counter, keeps.number = Counter.remote(), ray.put(np.ones(100_000))
            keeps.array, keeps.future = ray.get(keeps.number), keeps.number.future()
            print(ray.get(keeps.counter.add.remote(5)))
        """)
        self.assertEqual(out.split(), ["5", "1.0"])
        self.assertEqual(err, "")


class AfterShutdown(unittest.TestCase):
    """Of what one runtime gave, another and none at all refuse whatever is asked."""

    def setUp(self):
        ray.init(num_cpus=2)
        self.addCleanup(ray.shutdown)
        self.number, self.counter = ray.put(100), Counter.remote()
        self.group = ray.util.placement_group([{"CPU": 1}])
        self.array = get(ray.put(np.ones(100_000)))
        self.pickled = pickle.dumps(self.number)
        get([square.remote(2), self.counter.add.remote(1)])
        ray.shutdown()

    def all_that_takes_references(self):
        strategy = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(self.group)
        return {
            "get": lambda: get(self.number),
            "wait": lambda: ray.wait([self.number], timeout=5),
            "cancel": lambda: ray.cancel(self.number),
            "argument": lambda: get(square.remote(self.number)),
            "inside an argument": lambda: get(get_first.remote([self.number])),
            "put": lambda: ray.put([self.number]),
            "pickled": lambda: get(pickle.loads(self.pickled)),
            "future": lambda: self.number.future().result(5),
            "await": lambda: asyncio.run(asyncio.wait_for(_value(self.number), 5)),
            "method": lambda: get(self.counter.add.remote(1)),
            "actor inside an argument": lambda: get(get_first.remote([self.counter])),
            "kill": lambda: ray.kill(self.counter),
            "group": lambda: get(square.options(scheduling_strategy=strategy).remote(1)),
            "group that is waited for": lambda: self.group.wait(5),
            "group that is removed": lambda: ray.util.remove_placement_group(self.group),
        }

    def test_a_new_runtime_refuses_what_the_last_one_gave(self):
        ray.init(num_cpus=2)
        for what, ask in self.all_that_takes_references().items():
            with self.subTest(what):
                self.assertRegex(refusal(ask), "has ended|was shut down")
                self.assertRaises(ValueError, ask)  # As in Ray.
        self.assertEqual(get(square.remote(ray.put(3))), 9)  # What is remote is made so anew.
        self.assertEqual(self.array.sum(), 100_000)

    def test_without_a_new_one_what_has_ended_says_so(self):
        for what in ("method", "kill", "future", "await"):
            with self.subTest(what):
                self.assertRegex(refusal(self.all_that_takes_references()[what]), "has ended|was shut down")
        self.assertFalse(ray.is_initialized())

    def test_arrays_and_references_give_their_memory_back_after_the_end(self):
        def shared_segments():
            lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
            return sum("menger-values" in line for line in lines)

        gc.collect()  # What other tests have left in circles.
        before = shared_segments()
        self.assertGreater(before, 0)  # Of the array.
        for _ in range(3):
            ray.init(num_cpus=1)
            array, number = get(ray.put(np.ones(100_000))), ray.put(1)
            ray.shutdown()
            del array, number
        self.assertLessEqual(shared_segments(), before)  # Threads of other tests may have ended meanwhile.


async def _value(reference):
    return await reference


if __name__ == "__main__":
    unittest.main()
