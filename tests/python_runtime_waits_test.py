"""Programs whose calls wait for others: fan-outs, recursion, signals, and who gets a worker meanwhile."""

import os
import sys
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray


def setUpModule():
    check_library()
    ray.init(num_cpus=2, num_gpus=1)


tearDownModule = ray.shutdown


@ray.remote
def process():
    return os.getpid()


@ray.remote
def sleep(seconds):
    time.sleep(seconds)
    return time.monotonic()


@ray.remote
def outer():
    return {os.getpid(), ray.get(process.remote())}


@ray.remote
def outermost():
    return {os.getpid()} | ray.get(outer.remote())


@ray.remote
class Signal:
    """Ray's own tests have one like it."""

    def __init__(self):
        self.sent = None

    async def wait(self):
        import asyncio

        self.sent = self.sent or asyncio.Event()
        await self.sent.wait()

    async def send(self):
        import asyncio

        self.sent = self.sent or asyncio.Event()
        self.sent.set()


class Waits(unittest.TestCase):
    def test_a_flat_fan_out_ends_with_few_processes(self):
        processes = set().union(*get([outer.remote() for _ in range(300)]))
        self.assertLess(len(processes), 20)

    def test_two_levels_end_with_few_processes(self):
        processes = set().union(*get([outermost.remote() for _ in range(200)]))
        self.assertLess(len(processes), 60)

    def test_others_go_on_beside_a_fan_out(self):
        fan_out = [outermost.remote() for _ in range(100)]
        self.assertGreater(get(process.remote()), 0)
        get(fan_out)

    def test_recursion(self):
        @ray.remote
        def fibonacci(n):
            return n if n < 2 else sum(ray.get([fibonacci.remote(n - 1), fibonacci.remote(n - 2)]))

        self.assertEqual(get(fibonacci.remote(8)), 21)

    def test_calls_that_wait_for_what_a_later_call_does(self):
        signal = Signal.remote()

        @ray.remote
        def waits(signal, number):
            ray.get(signal.wait.remote())
            return number

        @ray.remote
        def sends(signal):
            ray.get(signal.send.remote())

        results = [waits.remote(signal, i) for i in range(12)]
        time.sleep(0.3)
        sent = sends.remote(signal)
        get(sent)
        self.assertEqual(get(results), list(range(12)))

    def test_other_classes_of_calls_do_not_starve(self):
        @ray.remote(num_cpus=1)
        class Counter:
            def when(self):
                return time.monotonic()

        begin = time.monotonic()
        calls = [sleep.remote(0.001) for _ in range(2000)]
        with_gpu = sleep.options(num_gpus=1).remote(0)
        counter = Counter.remote()
        first = max(get(with_gpu), get(counter.when.remote())) - begin
        del counter
        last = max(get(calls)) - begin
        self.assertLess(first, last / 2)

    def test_calls_do_not_wait_behind_a_long_one(self):
        get([sleep.remote(0) for _ in range(100)])
        long = sleep.remote(3)
        short = [process.remote() for _ in range(600)]
        get(short)
        self.assertEqual(ray.wait([long], timeout=0)[0], [])
        get(long)

    def test_actors_start_side_by_side(self):
        @ray.remote
        class Slow:
            def __init__(self):
                time.sleep(0.5)

            def number(self):
                return 1

        begin = time.monotonic()
        actors = [Slow.remote() for _ in range(24)]
        self.assertEqual(sum(get([actor.number.remote() for actor in actors])), 24)
        self.assertLess(time.monotonic() - begin, 24 * 0.5)  # One after the other.


if __name__ == "__main__":
    sys.exit(unittest.main())
