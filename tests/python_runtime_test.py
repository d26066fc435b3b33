"""Python programs written for Ray's names, on menger.runtime: tasks and objects, and what is left when workers die."""

import asyncio
import concurrent.futures
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import numpy as np
from python_runtime import PATIENCE_S, check_library, get, ray


def setUpModule():
    check_library()
    ray.init(num_cpus=2, resources={"special": 1}, runtime_env={"env_vars": {"COLOUR": "blue"}})


tearDownModule = ray.shutdown


@ray.remote
def add(x, y=1):
    return x + y


@ray.remote
def fail(text="a wall where none was"):
    raise ValueError(text)


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


@ray.remote
class Keeper:
    def keep(self, array):
        self.array = array

    def total(self):
        return float(self.array.sum())


def gone():
    raise KeyError("gone")


class Unreadable:
    def __reduce__(self):
        return gone, ()


class Tasks(unittest.TestCase):
    def test_results_arguments_and_keywords(self):
        self.assertEqual(get(add.remote(1)), 2)
        self.assertEqual(get(add.remote(x=3, y=4)), 7)
        self.assertEqual(get([add.remote(i, i) for i in range(10)]), [2 * i for i in range(10)])

    def test_a_function_may_be_forgotten_before_its_call_begins(self):
        self.assertEqual(get([ray.remote(lambda x: x + 1).remote(i) for i in range(20)]), list(range(1, 21)))

    def test_references_as_arguments_are_passed_as_their_values(self):
        self.assertEqual(get(add.remote(add.remote(1), y=add.remote(2))), 5)

    def test_references_inside_values_stay_references(self):
        @ray.remote
        def of(references):
            return sum(ray.get(references))

        @ray.remote
        def make(count):
            return [ray.put(i) for i in range(count)]

        self.assertEqual(get(of.remote([ray.put(20), add.remote(21)])), 42)
        inner = get(make.remote(100))  # What made them is done: the value alone keeps them.
        self.assertIsInstance(inner[0], ray.ObjectRef)
        self.assertEqual(sum(get(inner)), 4950)

    def test_a_value_that_cannot_be_unpickled_is_a_ray_error(self):
        reference = ray.put(Unreadable())
        with self.assertRaisesRegex(ray.exceptions.RaySystemError, r"value 1 of those .* KeyError\('gone'\)") as caught:
            get([ray.put(1), reference])
        self.assertIsInstance(caught.exception.__cause__, KeyError)

        @ray.remote
        def read(value):
            return value

        with self.assertRaises(KeyError):
            get(read.remote(reference))

    def test_several_results(self):
        @ray.remote(num_returns=3)
        def three():
            return 1, "two", [3]

        self.assertEqual(get(three.remote()), [1, "two", [3]])
        first, second = three.options(num_returns=2).remote()
        with self.assertRaisesRegex(ValueError, "num_returns=2 and gave 3"):
            get(first)
        self.assertIsNone(three.options(num_returns=0).remote())

    def test_nested_and_recursive_functions(self):
        @ray.remote
        def fibonacci(n):
            return n if n < 2 else sum(ray.get([fibonacci.remote(n - 1), fibonacci.remote(n - 2)]))

        @ray.remote
        def even(n):
            return n == 0 or ray.get(odd.remote(n - 1))

        @ray.remote
        def odd(n):
            return n != 0 and ray.get(even.remote(n - 1))

        self.assertEqual(get(fibonacci.remote(8)), 21)
        self.assertTrue(get(even.remote(6)))
        self.assertFalse(get(odd.remote(6)))

    def test_ten_thousand_tasks(self):
        self.assertEqual(sum(get([add.remote(i) for i in range(10_000)])), 50_005_000)

    def test_options(self):
        self.assertEqual(get(add.options(num_cpus=0.5, resources={"special": 1}, name="special").remote(1)), 2)
        with self.assertWarnsRegex(UserWarning, "'add' waits for what the machine does not have: special: needs 2, there is 1"):
            never = add.options(resources={"special": 2}).remote(1)
        self.assertEqual(ray.wait([never], timeout=0.1)[0], [])
        with self.assertRaisesRegex(ValueError, "no option"):
            add.options(num_cores=2)
        with self.assertRaisesRegex(TypeError, "add.remote"):
            add(1)

    def test_what_the_program_defines_travels(self):
        class Point:
            def __init__(self, x):
                self.x = x

        @ray.remote
        def double(point):
            return Point(2 * point.x), lambda: point.x

        point, closure = get(double.remote(Point(4)))
        self.assertEqual((point.x, closure()), (8, 4))

    def test_environment_of_workers(self):
        @ray.remote
        def colour():
            return os.environ["COLOUR"]

        self.assertEqual(get(colour.remote()), "blue")


class Objects(unittest.TestCase):
    def test_values_of_many_kinds(self):
        for value in (None, 1, 2.5, "text", b"bytes", [1, [2, (3,)]], {"a": {4}}, 2**100, float("inf")):
            self.assertEqual(get(ray.put(value)), value)

    def test_arrays_are_shared_read_only_and_aligned(self):
        array = np.arange(1_000_000, dtype=np.float32).reshape(1000, 1000)
        reference = ray.put({"array": array, "transposed": array.T})
        one, other = get(reference), get(reference)
        np.testing.assert_array_equal(one["array"], array)
        np.testing.assert_array_equal(one["transposed"], array.T)
        self.assertFalse(one["array"].flags.writeable)
        self.assertEqual(one["array"].ctypes.data % 64, 0)
        self.assertTrue(np.shares_memory(one["array"], other["array"]))
        self.assertFalse(get(ray.put(np.zeros(3))).flags.writeable)

    def test_an_array_outlives_its_reference(self):
        arrays = [get(ray.put(np.full(100_000, i))) for i in range(20)]
        self.assertEqual([array[0] for array in arrays], list(range(20)))

    def test_large_arguments_and_results(self):
        array = np.ones(1_000_000)
        self.assertEqual(get(add.remote(array, 1)).sum(), 2_000_000)
        self.assertEqual(len(get(add.remote(b"x" * 3_000_000, b"y"))), 3_000_001)

    def test_an_actor_may_keep_an_array(self):
        keeper = Keeper.remote()
        get([keeper.keep.remote(np.ones(200_000)), keeper.keep.remote(ray.put(np.ones(100_000)))])
        for _ in range(20):  # What would be written over it, were it free.
            get(add.remote(np.zeros(100_000), 5))
        self.assertEqual(get(keeper.total.remote()), 100_000)

    def test_references_are_equal_and_hashable(self):
        reference = ray.put(1)
        (same,) = get(ray.put([reference]))
        self.assertEqual({reference: "found"}[same], "found")
        self.assertNotEqual(reference, ray.put(1))
        self.assertEqual(reference.hex(), same.hex())
        self.assertEqual(len(reference.binary()), 16)

    def test_wrong_use(self):
        for wrong in (1, [1], "text"):
            with self.assertRaises(ValueError):
                ray.get(wrong)
        with self.assertRaises(TypeError):
            ray.put(ray.put(1))
        self.assertEqual(ray.get([]), [])


class Waiting(unittest.TestCase):
    def test_wait_gives_the_first_that_are_ready(self):
        slow, quick = sleep.remote(5), add.remote(1)
        self.assertEqual(ray.wait([slow, quick], timeout=PATIENCE_S), ([quick], [slow]))
        self.assertEqual(ray.wait([slow], timeout=0.05), ([], [slow]))
        ray.cancel(slow, force=True)

    def test_wait_counts_no_more_than_asked(self):
        references = [add.remote(i) for i in range(5)]
        get(references)
        ready, pending = ray.wait(references, num_returns=3, timeout=PATIENCE_S)
        self.assertEqual((ready, pending), (references[:3], references[3:]))
        for wrong in (0, 6):
            with self.assertRaises(ValueError):
                ray.wait(references, num_returns=wrong)
        with self.assertRaises(ValueError):
            ray.wait([references[0], references[0]])

    def test_get_of_several_raises_as_soon_as_one_fails(self):
        bad, slow = fail.remote(), sleep.remote(60)
        began = time.monotonic()
        with self.assertRaises(ray.exceptions.RayTaskError):
            get([slow, bad])
        self.assertLess(time.monotonic() - began, 30)
        ray.cancel(slow, force=True)

    def test_one_after_the_other_in_a_loop(self):
        left = [ray.put(i) for i in range(300)]
        values = []
        while left:
            ready, left = ray.wait(left)
            values += get(ready)
        self.assertEqual(values, list(range(300)))

    def test_get_has_a_timeout(self):
        reference = sleep.remote(5)
        with self.assertRaises(ray.exceptions.GetTimeoutError):
            ray.get(reference, timeout=0.05)
        with self.assertRaises(TimeoutError):
            ray.get([reference], timeout=0)
        ray.cancel(reference, force=True)

    def test_await(self):
        async def main():
            keeper = Keeper.remote()
            await keeper.keep.remote(np.ones(2))
            self.assertEqual(await keeper.total.remote(), 2)
            self.assertEqual(await asyncio.gather(*[add.remote(i) for i in range(50)]), list(range(1, 51)))
            with self.assertRaises(ValueError):
                await fail.remote()

        asyncio.run(main())

    def test_of_several_that_are_awaited_some_fail(self):
        async def main():
            calls = [fail.remote() if i % 7 == 3 else add.remote(i) for i in range(50)]
            results = await asyncio.gather(*calls, *calls[:10], return_exceptions=True)
            for i, result in zip([*range(50), *range(10)], results, strict=True):
                if i % 7 == 3:
                    self.assertIsInstance(result, ValueError)
                else:
                    self.assertEqual(result, i + 1)

        asyncio.run(main())

    def test_a_loop_may_end_while_it_waits(self):
        async def main():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(slow, 0.01)

        slow = sleep.remote(0.2)
        asyncio.run(main())
        get(slow)
        self.assertEqual(add.remote(1).future().result(PATIENCE_S), 2)  # The thread that waits goes on.

    def test_future(self):
        self.assertEqual(add.remote(1).future().result(PATIENCE_S), 2)


    def test_many_threads(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            sums = pool.map(lambda first: sum(get([add.remote(first + i) for i in range(100)])), range(16))
            self.assertEqual(list(sums), [5050 + 100 * first for first in range(16)])


class Definitions(unittest.TestCase):
    def test_a_function_that_refers_to_several_objects(self):
        for count in (2, 3, 10, 100):
            references = [ray.put(i) for i in range(count)]

            @ray.remote
            def total():
                return sum(ray.get(references))

            self.assertEqual(get(total.remote()), count * (count - 1) // 2)

    def test_a_function_that_refers_to_several_actors(self):
        @ray.remote
        class Holder:
            def __init__(self, value):
                self.value = value

            def get(self):
                return self.value

        first, second = Holder.remote("first"), Holder.remote("second")

        @ray.remote
        def ask():
            return ray.get([first.get.remote(), second.get.remote()])

        self.assertEqual(get(ask.remote()), ["first", "second"])

    def test_a_function_that_calls_one_that_calls_itself(self):
        @ray.remote
        def factorial(n):
            return n * ray.get(factorial.remote(n - 1)) if n else 1

        @ray.remote
        def outer(n):
            return ray.get(factorial.remote(n))

        self.assertEqual(get(outer.remote(3)), 6)

    def test_functions_that_call_each_other_for_another(self):
        @ray.remote
        def even(n):
            return ray.get(odd.remote(n - 1)) if n else True

        @ray.remote
        def odd(n):
            return ray.get(even.remote(n - 1)) if n else False

        @ray.remote
        def parities(ns):
            return ray.get([even.remote(n) for n in ns])

        self.assertEqual(get(parities.remote([2, 3])), [True, False])

    def test_a_function_that_makes_an_actor_that_makes_its_like(self):
        @ray.remote
        class Node:
            def __init__(self, depth):
                self.parts = [Node.remote(depth - 1) for _ in range(2)] if depth else []

            def count(self):
                return 1 + sum(ray.get([part.count.remote() for part in self.parts]))

        @ray.remote
        def count(depth):
            return ray.get(Node.remote(depth).count.remote())

        self.assertEqual(get(count.remote(1)), 3)


class Failures(unittest.TestCase):
    def test_an_exception_keeps_its_class_and_its_traceback(self):
        with self.assertRaises(ValueError) as caught:
            get(fail.remote("too high"))
        self.assertIsInstance(caught.exception, ray.exceptions.RayTaskError)
        self.assertEqual(caught.exception.args, (caught.exception.cause,))
        self.assertEqual(caught.exception.cause.args, ("too high",))
        self.assertIsInstance(caught.exception.cause, ValueError)
        self.assertIn('raise ValueError(text)', str(caught.exception))

    def test_what_needs_a_failed_value_fails_likewise(self):
        with self.assertRaisesRegex(ValueError, "too low"):
            get(add.remote(fail.remote("too low")))

    def test_a_nested_failure_keeps_the_first_class(self):
        @ray.remote
        def outer():
            return ray.get(fail.remote("deep"))

        with self.assertRaisesRegex(ValueError, "deep"):
            get(outer.remote())

    def test_an_exception_of_the_program(self):
        class Mine(Exception):
            pass

        @ray.remote
        def raise_mine():
            raise Mine("own")

        with self.assertRaisesRegex(Mine, "own"):
            get(raise_mine.remote())

    def test_exceptions_whose_constructors_take_other_arguments_arrive_whole(self):
        class CodedError(Exception):
            def __init__(self, code, why=""):
                super().__init__(code, why)
                self.code = code

        @ray.remote
        def undecodable():
            b"\xff".decode()

        @ray.remote
        def missing():
            open("/nonexistent/file").close()

        @ray.remote
        def coded():
            raise CodedError(5)

        for function, kind, field, value in ((undecodable, UnicodeDecodeError, "object", b"\xff"),
                                             (missing, FileNotFoundError, "filename", "/nonexistent/file"),
                                             (coded, CodedError, "code", 5)):  # fmt: skip
            with self.assertRaises(kind) as caught:
                get(function.remote())
            self.assertIsInstance(caught.exception, ray.exceptions.RayTaskError)
            self.assertEqual(getattr(caught.exception, field), value)
            self.assertIn("line ", str(caught.exception))

    def test_exceptions_with_their_own_arguments_and_those_that_cannot_travel(self):
        class Strange(Exception):
            def __init__(self, a, b):
                super().__init__(a)
                self.b, self.lock = b, __import__("threading").Lock()

        @ray.remote
        def strange():
            raise Strange(1, 2)

        with self.assertRaisesRegex(ray.exceptions.RayTaskError, "Strange") as caught:
            get(strange.remote())
        self.assertIsInstance(caught.exception.cause, ray.exceptions.RayError)
        self.assertIn("a Strange isn't serializable", str(caught.exception.cause))

    def test_a_result_that_cannot_travel(self):
        @ray.remote
        def lock():
            return __import__("threading").Lock()

        with self.assertRaisesRegex(TypeError, "lock"):
            get(lock.remote())

    def test_a_worker_that_dies_is_replaced(self):
        with tempfile.TemporaryDirectory() as folder:

            @ray.remote(max_retries=2)
            def die_once(path):
                if not os.path.exists(path):
                    pathlib.Path(path).touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return "alive"

            self.assertEqual(get(die_once.remote(os.path.join(folder, "died"))), "alive")

        @ray.remote(max_retries=0)
        def die():
            os.kill(os.getpid(), signal.SIGSEGV)

        with self.assertRaisesRegex(ray.exceptions.WorkerCrashedError, "SIGSEGV"):
            get(die.remote())
        self.assertEqual(get(add.remote(1)), 2)

    def test_exceptions_are_retried_where_asked(self):
        with tempfile.TemporaryDirectory() as folder:

            @ray.remote(retry_exceptions=True, max_retries=5)
            def third_time(path):
                with open(path, "a") as file:
                    file.write("x")
                if os.path.getsize(path) < 3:
                    raise ValueError("not yet")
                return os.path.getsize(path)

            self.assertEqual(get(third_time.remote(os.path.join(folder, "count"))), 3)

    def test_exit_in_a_task_ends_its_worker(self):
        @ray.remote(max_retries=0)
        def leave():
            sys.exit(3)

        with self.assertRaisesRegex(ray.exceptions.WorkerCrashedError, "exit status 3"):
            get(leave.remote())


if __name__ == "__main__":
    unittest.main()
