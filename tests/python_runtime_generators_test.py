"""Python programs written for Ray's names, on menger.runtime: generators."""

import asyncio
import gc
import time
import unittest

import numpy as np
from python_runtime import PATIENCE_S, check_library, get, ray


def setUpModule():
    check_library()
    ray.init(num_cpus=2)


tearDownModule = ray.shutdown


@ray.remote
def count(n, fails_at=None):
    for i in range(n):
        if i == fails_at:
            raise ValueError("no more")
        yield i


@ray.remote
class Source:
    def __init__(self):
        self.yielded = 0

    def count(self, n):
        for i in range(n):
            self.yielded += 1
            yield i

    def seen(self):
        return self.yielded


@ray.remote
class AsyncSource:
    async def count(self, n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    def plainly(self, n):
        yield from range(n)


@ray.remote
async def in_one_task(n):
    task = asyncio.current_task()
    for _ in range(n):
        await asyncio.sleep(0)
        yield asyncio.current_task() is task


class Streams(unittest.TestCase):
    def test_items_come_in_order(self):
        stream = count.remote(100)
        self.assertIsInstance(stream, ray.ObjectRefGenerator)
        self.assertEqual([get(each) for each in stream], list(range(100)))
        with self.assertRaises(StopIteration):
            next(stream)
        self.assertEqual(get(stream.completed()), 100)
        self.assertTrue(stream.is_finished())

    def test_items_are_there_before_the_end(self):
        @ray.remote
        def slow(gate):
            yield np.arange(100_000)
            get(gate.remote())
            yield "last"

        @ray.remote(num_cpus=0)
        class Gate:
            async def __call__(self):
                await asyncio.sleep(0.2)

        stream = slow.remote(Gate.remote().__call__)
        self.assertEqual(get(next(stream))[-1], 99_999)
        self.assertFalse(stream.is_finished())
        self.assertEqual(get(next(stream)), "last")

    def test_an_error_comes_after_the_items_before_it(self):
        stream = count.remote(5, fails_at=2)
        self.assertEqual([get(next(stream)), get(next(stream))], [0, 1])
        failed = next(stream)
        with self.assertRaises(ValueError):
            get(failed)
        with self.assertRaises(StopIteration):
            next(stream)

    def test_a_run_that_fails_is_run_again_and_each_item_comes_once(self):
        @ray.remote(num_cpus=0)
        class Runs:
            def __init__(self):
                self.runs = 0

            def next(self):
                self.runs += 1
                return self.runs

        @ray.remote(max_retries=3, retry_exceptions=[KeyError])
        def flaky(runs):
            run = ray.get(runs.next.remote())
            for i in range(4):
                if i == 2 and run < 3:
                    raise KeyError(run)
                yield i

        runs = Runs.remote()
        self.assertEqual([get(each) for each in flaky.remote(runs)], [0, 1, 2, 3])
        self.assertEqual(get(runs.next.remote()), 4)

    def test_a_writer_waits_for_its_reader(self):
        source = Source.options(max_concurrency=2).remote()
        stream = source.count.options(_generator_backpressure_num_objects=2).remote(10)
        get(next(stream))
        time.sleep(0.2)
        self.assertLessEqual(get(source.seen.remote()), 4)
        self.assertEqual([get(each) for each in stream], list(range(1, 10)))

    def test_one_that_is_dropped_goes_on(self):
        @ray.remote(_generator_backpressure_num_objects=1)
        def several():
            yield from range(5)

        stream = several.remote()
        get(next(stream))
        end = stream.completed()
        self.assertEqual(ray.wait([end], timeout=0.3)[0], [])  # It waits for its reader.
        del stream
        gc.collect()
        self.assertEqual(get(end), 5)

    def test_cancel_ends_it(self):
        @ray.remote
        def slow():
            yield 1
            time.sleep(PATIENCE_S)

        stream = slow.remote()
        get(next(stream))
        ray.cancel(stream)
        with self.assertRaises(ray.exceptions.TaskCancelledError):
            get(next(stream))

    def test_methods_of_actors(self):
        self.assertEqual([get(each) for each in Source.remote().count.remote(3)], [0, 1, 2])
        source = AsyncSource.remote()
        several = [source.count.remote(20), source.plainly.remote(20), source.count.remote(20)]
        for stream in several:
            self.assertEqual([get(each) for each in stream], list(range(20)))

    def test_an_async_one_runs_in_one_task(self):
        @ray.remote
        class Limited:
            def __init__(self):
                self.ended = []

            async def items(self, n):
                task = asyncio.current_task()
                try:
                    async with asyncio.timeout(PATIENCE_S):
                        for i in range(n):
                            await asyncio.sleep(0)
                            yield i, asyncio.current_task() is task
                finally:
                    self.ended.append(asyncio.current_task() is task)

            async def too_late(self):
                async with asyncio.timeout(0.01):
                    yield "in time"
                    await asyncio.sleep(PATIENCE_S)

            def told(self):
                return self.ended

        limited = Limited.remote()
        self.assertEqual([get(item) for item in limited.items.remote(3)], [(i, True) for i in range(3)])
        dropped = limited.items.remote(1000)
        self.assertEqual(get(next(dropped)), (0, True))
        del dropped
        end = time.monotonic() + PATIENCE_S
        while get(limited.told.remote()) != [True, True]:
            self.assertLess(time.monotonic(), end)
        late = limited.too_late.remote()
        self.assertEqual(get(next(late)), "in time")
        with self.assertRaises(TimeoutError):
            get(next(late))
        self.assertEqual([get(item) for item in in_one_task.remote(3)], [True] * 3)

    def test_those_of_coroutines_do_not_wait_for_a_reader(self):
        stream = AsyncSource.remote().count.options(_generator_backpressure_num_objects=1).remote(2)
        with self.assertRaisesRegex(ValueError, "not supported in an actor with coroutines"):
            get(next(stream))

    def test_they_can_be_awaited(self):
        async def read(stream):
            return [await each async for each in stream]

        async def read_two():
            return await asyncio.gather(read(count.remote(20)), read(AsyncSource.remote().count.remote(20)))

        self.assertEqual(asyncio.run(read_two()), [list(range(20))] * 2)

    def test_wait_says_which_has_an_item(self):
        @ray.remote
        def late():
            time.sleep(0.5)
            yield 1

        early, slow = count.remote(1), late.remote()
        ready, pending = ray.wait([slow, early], timeout=PATIENCE_S)
        self.assertEqual((ready, pending), ([early], [slow]))
        self.assertEqual(len(ray.wait([slow, early], num_returns=2, timeout=PATIENCE_S)[0]), 2)

    def test_it_cannot_be_sent(self):
        with self.assertRaisesRegex(TypeError, "only who called the generator"):
            ray.put(count.remote(1))


class AllAtOnce(unittest.TestCase):
    def test_dynamic_gives_one_reference_on_all(self):
        for call in (count, Source.remote().count, AsyncSource.remote().count):
            found = get(call.options(num_returns="dynamic").remote(4))
            self.assertIsInstance(found, ray.DynamicObjectRefGenerator)
            self.assertEqual(len(found), 4)
            self.assertEqual([get(each) for each in found], [0, 1, 2, 3])

    def test_dynamic_keeps_what_came_before_an_error(self):
        first, failed = get(count.options(num_returns="dynamic").remote(5, fails_at=1))
        self.assertEqual(get(first), 0)
        with self.assertRaises(ValueError):
            get(failed)

    def test_a_number_of_results(self):
        self.assertEqual(get(count.options(num_returns=3).remote(3)), [0, 1, 2])
        self.assertEqual(get(count.options(num_returns=2).remote(3)), [0, 1])  # What is beyond nobody asks for.
        self.assertEqual(get(count.options(num_returns=1).remote(1)), 0)
        with self.assertRaisesRegex(ValueError, "num_returns=3 and gave 2"):
            get(count.options(num_returns=3).remote(2))

    def test_those_before_an_error_can_be_read(self):
        @ray.remote
        def use(value):
            return value

        first, second, third = count.options(num_returns=3).remote(3, fails_at=1)
        self.assertEqual(get(first), 0)
        for failed in (second, third, use.remote(second)):
            with self.assertRaises(ValueError):
                get(failed)

    def test_functions_that_are_no_generators(self):
        with self.assertRaisesRegex(ValueError, "can only be used with generators; 'abs' is none"):
            ray.remote(num_returns="streaming")(abs)
        with self.assertRaisesRegex(TypeError, "num_returns='dynamic' gave int; it must be a generator"):
            get(ray.remote(num_returns="dynamic")(abs).remote(-1))


if __name__ == "__main__":
    unittest.main()
