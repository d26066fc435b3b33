"""Programs whose calls wait for others: fan-outs, recursion, signals, and who gets a worker meanwhile."""

import asyncio
import os
import sys
import threading
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


def on_threads(count, work):
    """Runs `work` on threads of the call and gives what each of them got."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@ray.remote
def outer_on_threads(count):
    return on_threads(count, lambda: ray.get(process.remote()))


@ray.remote
def waits_on_threads(count):
    def work():
        ready, _ = ray.wait([process.remote()], timeout=PATIENCE_S)
        return len(ready)

    return sum(on_threads(count, work))


@ray.remote
def awaits():
    import asyncio

    async def wait():
        await asyncio.sleep(0.01)
        return await process.remote()

    return asyncio.run(wait())


@ray.remote
def waits_for_futures():
    import concurrent.futures

    futures = [process.remote().future() for _ in range(3)]
    return len(concurrent.futures.wait(futures).done)


@ray.remote
def awaits_for_ever(signal):
    import asyncio

    async def wait():
        await signal[0]

    asyncio.run(wait())


@ray.remote
def leaves_a_thread(signal):
    threading.Thread(target=lambda: ray.get(signal[0]), daemon=True).start()
    time.sleep(0.5)  # Until the wait has lent what the call has.
    return os.getpid()


@ray.remote(num_cpus=1)
class OnThreads:
    def wait(self, signal):
        return on_threads(1, lambda: ray.get(signal[0]))

    def answer(self):
        return 1


class Waits(unittest.TestCase):
    def test_threads_of_an_actor_whose_other_calls_may_go_on_lend_nothing(self):
        for concurrency, free in ((1, 2), (2, 1)):
            signal, actor = Signal.remote(), OnThreads.options(max_concurrency=concurrency).remote()
            get(actor.answer.remote())
            waiting = actor.wait.remote([signal.wait.remote()])
            time.sleep(1)
            if concurrency > 1:
                get([actor.answer.remote() for _ in range(100)])
            self.assertEqual(ray.available_resources()["CPU"], free)
            get(signal.send.remote())
            get(waiting)

    def test_a_call_whose_threads_wait_lends_its_cpu(self):
        # All CPUs have such calls: what they wait for ran never.
        for results in get([outer_on_threads.remote(2) for _ in range(4)]):
            self.assertEqual(len(results), 2)
        self.assertEqual(get([waits_on_threads.remote(3) for _ in range(4)]), [3] * 4)

    def test_a_constructor_may_be_a_coroutine(self):
        @ray.remote
        class Late:
            async def __init__(self, by, *, more):
                await asyncio.sleep(0.01)
                self.sum = by + more
                if more == 0:
                    raise KeyError("nothing more")

            async def get(self):
                return self.sum

        self.assertEqual(get(Late.remote(1, more=2).get.remote()), 3)
        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "nothing more"):
            get(Late.remote(1, more=0).get.remote())

    def test_a_call_that_awaits_lends_its_cpu(self):
        self.assertEqual(len(get([awaits.remote() for _ in range(6)])), 6)
        self.assertEqual(get([waits_for_futures.remote() for _ in range(6)]), [3] * 6)

    def test_futures_of_a_process_whose_call_was_cancelled_go_on(self):
        get([awaits.remote() for _ in range(6)])  # So that none is cancelled in the middle of an import.
        signal = Signal.remote()
        sent = signal.wait.remote()
        waiting = [awaits_for_ever.remote([sent]) for _ in range(2)]
        time.sleep(1)
        for each in waiting:
            ray.cancel(each)
        for each in waiting:
            self.assertRaises(ray.exceptions.TaskCancelledError, get, each)
        self.assertEqual(len(get([awaits.remote() for _ in range(6)])), 6)
        get(signal.send.remote())

    def test_a_thread_that_outlives_its_call_keeps_no_worker(self):
        signal = Signal.remote()
        sent = signal.wait.remote()
        left = get([leaves_a_thread.remote([sent]) for _ in range(4)])
        self.assertEqual(len(left), 4)
        both = get([sleep.remote(0.1) for _ in range(4)])
        self.assertEqual(len(both), 4)
        get(signal.send.remote())

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
