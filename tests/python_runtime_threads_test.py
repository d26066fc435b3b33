"""Python programs written for Ray's names, on menger.runtime: threads that a program, or a task, has started itself."""

import gc
import sys
import threading
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray

THREADS = 4


def setUpModule():
    check_library()
    ray.init(num_cpus=4)


tearDownModule = ray.shutdown


def at_once(function):
    """What a function gives in each of some threads that begin together."""
    results, start = [], threading.Barrier(THREADS)

    def run():
        start.wait()
        results.append(function())

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    return results


class ThreadsTest(unittest.TestCase):
    # Each function is new to all of its threads. One of two hundred such races ended the process before there was a lock.
    def test_they_may_be_the_first_to_call_a_function_together(self):
        for i in range(300):
            same = ray.remote(lambda x, i=i: (x, i))
            self.assertEqual(at_once(lambda same=same: get([same.remote(k) for k in range(3)])), [[(k, i) for k in range(3)]] * THREADS)

    def test_of_those_that_call_it_first_one_brings_it(self):
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        self.addCleanup(sys.setswitchinterval, before)
        for _ in range(30):

            @ray.remote
            class Number:
                def get(self):
                    return 2

            same = ray.remote(lambda: 1)
            found = at_once(lambda same=same, kind=Number: get([same.remote(), kind.options(num_cpus=0).remote().get.remote()]))
            self.assertEqual(found, [[1, 2]] * THREADS)

    def test_threads_of_a_task_may_call(self):
        @ray.remote
        def square(x):
            return x * x

        @ray.remote
        def fan_out():
            results = []
            threads = [threading.Thread(target=lambda: results.append(ray.get([square.remote(i) for i in range(20)]))) for _ in range(4)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            return results

        for _ in range(10):
            self.assertEqual(get(fan_out.remote()), [[i * i for i in range(20)]] * 4)

    def test_they_may_read_one_generator(self):
        @ray.remote
        def numbers(count):
            yield from range(count)

        generator = numbers.remote(200)
        parts = at_once(lambda: [get(each) for each in generator])
        self.assertEqual(len(parts), THREADS)
        self.assertEqual(sorted(item for part in parts for item in part), list(range(200)))


class Collected:
    """Says of what kinds the objects are that only the collector can find."""

    def begin(self):
        gc.collect()
        gc.garbage.clear()

    def count(self, fails):
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = [type(each).__name__ for each in gc.garbage]
        if fails:
            raise ValueError(found)
        return found

    def items(self):
        yield self.count(False)


class CollectedOnALoop(Collected):
    async def items(self):
        yield self.count(False)

    async def raise_late(self):
        yield self.count(True)


class Garbage(unittest.TestCase):
    def test_calls_leave_none(self):
        for kind, concurrency in ((Collected, 1), (Collected, 4), (CollectedOnALoop, 4)):
            actor = ray.remote(kind).options(max_concurrency=concurrency).remote()
            for i in range(5):
                if i < 2:  # What is imported by the first that raises leaves something of its own.
                    get(actor.begin.remote())
                with self.assertRaises(ValueError):
                    get(actor.count.remote(True))
                found = [get(item) for item in actor.items.remote()]
                self.assertTrue(i < 1 or found == [[]], found)
            if kind is CollectedOnALoop:
                with self.assertRaises(ValueError):
                    get(next(actor.raise_late.remote()))
            self.assertEqual(get(actor.count.remote(False)), [])


if __name__ == "__main__":
    unittest.main()
