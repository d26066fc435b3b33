"""Python programs written for Ray's names, on menger.runtime: pools, queues, groups of methods, options."""

import asyncio
import importlib.util
import os
import threading
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray

from menger.runtime.util import ActorPool
from menger.runtime.util import multiprocessing
from menger.runtime.util.multiprocessing import Pool
from menger.runtime.util.queue import Empty, Full, Queue


def setUpModule():
    check_library()
    ray.init(num_cpus=4)


tearDownModule = ray.shutdown


@ray.remote
class Doubler:
    def double(self, x):
        return 2 * x

    def sleep(self, seconds):
        time.sleep(seconds)
        return seconds


def double(actor, value):
    return actor.double.remote(value)


class ActorPools(unittest.TestCase):
    def setUp(self):
        self.pool = ActorPool([Doubler.remote() for _ in range(2)])

    def test_results_in_order_and_as_they_come(self):
        self.assertEqual(list(self.pool.map(double, range(10))), list(range(0, 20, 2)))
        self.assertEqual(sorted(self.pool.map_unordered(double, range(10))), list(range(0, 20, 2)))

    def test_one_by_one(self):
        for value in range(5):
            self.pool.submit(double, value)
        self.assertFalse(self.pool.has_free())
        self.assertEqual([self.pool.get_next() for _ in range(5)], [0, 2, 4, 6, 8])
        self.assertTrue(self.pool.has_free())
        with self.assertRaises(StopIteration):
            self.pool.get_next()

    def test_work_that_is_late_can_be_forgotten(self):
        self.pool.submit(lambda actor, seconds: actor.sleep.remote(seconds), 1)
        with self.assertRaises(TimeoutError):
            self.pool.get_next(timeout=0.01)
        self.assertTrue(self.pool.has_next())
        with self.assertRaises(TimeoutError):
            self.pool.get_next(timeout=0.01, ignore_if_timedout=True)
        self.assertFalse(self.pool.has_next())

    def test_actors_come_and_go(self):
        one = self.pool.pop_idle()
        self.pool.pop_idle()
        self.assertIsNone(self.pool.pop_idle())
        self.pool.submit(double, 4)
        self.pool.push(one)
        self.assertEqual(self.pool.get_next(), 8)
        with self.assertRaisesRegex(ValueError, "belongs to the pool already"):
            self.pool.push(one)


class Queues(unittest.TestCase):
    def test_first_in_first_out(self):
        queue = Queue()
        queue.put_nowait_batch(range(5))
        queue.put("last")
        self.assertEqual((queue.qsize(), len(queue), queue.empty(), queue.full()), (6, 6, False, False))
        self.assertEqual(queue.get_nowait_batch(5), list(range(5)))
        self.assertEqual(queue.get(), "last")
        self.assertTrue(queue.empty())

    def test_what_does_not_fit(self):
        queue = Queue(1)
        queue.put(1)
        self.assertTrue(queue.full())
        for put in (queue.put_nowait, lambda item: queue.put(item, timeout=0.01), lambda item: queue.put_nowait_batch([item])):
            with self.assertRaises(Full):
                put(2)
        queue.get()
        for take in (queue.get_nowait, lambda: queue.get(timeout=0.01), lambda: queue.get_nowait_batch(1)):
            with self.assertRaises(Empty):
                take()
        with self.assertRaisesRegex(ValueError, "timeout is -1"):
            queue.get(timeout=-1)

    def test_tasks_share_it(self):
        @ray.remote
        def move(source, target):
            target.put(source.get())

        source, target = Queue(), Queue(2)
        moved = [move.remote(source, target) for _ in range(2)]
        source.put_nowait_batch([1, 2])
        get(moved)
        self.assertEqual({target.get(), target.get()}, {1, 2})

    def test_it_can_be_awaited(self):
        async def use(queue):
            taken = asyncio.ensure_future(queue.get_async())
            await queue.put_async(3)
            return await taken

        self.assertEqual(asyncio.run(use(Queue())), 3)

    def test_shutdown_ends_its_actor(self):
        queue = Queue()
        actor = queue.actor
        queue.shutdown()
        with self.assertRaises(ray.exceptions.RayActorError):
            get(actor.empty.remote())


def process_of(_):
    return os.getpid()


def inverse(x):
    return 1 / x


class Pools(unittest.TestCase):
    def test_maps(self):
        with Pool(2) as pool:
            self.assertEqual(pool.map(abs, range(-5, 5)), [abs(x) for x in range(-5, 5)])
            self.assertEqual(pool.starmap(pow, [(2, 3), (3, 2)]), [8, 9])
            self.assertEqual(list(pool.imap(abs, range(-20, 0), chunksize=3)), list(range(20, 0, -1)))
            self.assertEqual(sorted(pool.imap_unordered(abs, iter(range(-20, 0)))), list(range(1, 21)))
            self.assertEqual(len(set(pool.map(process_of, range(20)))), 2)
            self.assertEqual(pool.apply(int, ("11",), {"base": 2}), 3)

    def test_errors(self):
        told = []
        with Pool(2) as pool:
            with self.assertRaises(ZeroDivisionError):
                pool.map(inverse, [1, 0])
            result = pool.map_async(inverse, [1, 0, 0], callback=told.append, error_callback=told.append)
            result.wait(PATIENCE_S)
            self.assertFalse(result.successful())
            self.assertEqual([type(each) for each in told], [ZeroDivisionError])
            items = pool.imap(inverse, [1, 0, 2])
            self.assertEqual([type(each) for each in items], [float, ZeroDivisionError, float])
            late = pool.apply_async(time.sleep, (1,))
            with self.assertRaises(multiprocessing.TimeoutError):
                late.get(timeout=0.01)
            with self.assertRaisesRegex(ValueError, "not ready"):
                late.successful()

    def test_what_a_pool_refuses(self):
        with self.assertRaisesRegex(TypeError, "processes is 'x'"):
            Pool("x")
        with self.assertRaisesRegex(ValueError, "processes is 100; the runtime that is open has"):
            Pool(100)
        with Pool(1) as pool, self.assertRaisesRegex(ValueError, "chunksize is -1"):
            pool.map(abs, [1, 2], chunksize=-1)

    def test_what_was_begun_is_done_after_close(self):
        pool = Pool(2)
        result = pool.map_async(abs, range(-10, 0))
        pool.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            pool.map(abs, [1])
        pool.join()
        self.assertEqual(result.get(timeout=PATIENCE_S), list(range(10, 0, -1)))

    def test_processes_that_are_changed_after_some_chunks(self):
        with Pool(1, maxtasksperchild=2) as pool:
            processes = [pool.apply(process_of, (0,)) for _ in range(6)]
        self.assertEqual(len(set(processes)), 3)

    @unittest.skipUnless(importlib.util.find_spec("joblib"), "needs joblib")
    def test_joblib(self):
        import joblib

        from menger.runtime.util.joblib import register_ray

        register_ray()
        with joblib.parallel_backend("ray"):
            self.assertEqual(joblib.Parallel()(joblib.delayed(abs)(-x) for x in range(10)), list(range(10)))


@ray.remote(concurrency_groups={"pair": 2})
class Grouped:
    def __init__(self):
        self.at_once, self.most, self.lock = 0, 0, threading.Lock()

    @ray.method(concurrency_group="pair")
    def work(self):
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(0.05)
        with self.lock:
            self.at_once -= 1

    def block(self):
        time.sleep(PATIENCE_S)

    @ray.method(concurrency_group="pair")
    def seen(self):
        return self.most


@ray.remote(concurrency_groups={"io": 1})
class AsyncGrouped:
    async def block(self):
        time.sleep(PATIENCE_S)

    @ray.method(concurrency_group="io")
    async def ping(self):
        return "pong"


class ConcurrencyGroups(unittest.TestCase):
    def test_as_many_at_once_as_said_and_beside_the_others(self):
        actor = Grouped.remote()
        actor.block.remote()
        get([actor.work.remote() for _ in range(6)])
        self.assertEqual(get(actor.seen.remote()), 2)

    def test_of_coroutines(self):
        actor = AsyncGrouped.remote()
        actor.block.remote()
        self.assertEqual(get(actor.ping.remote()), "pong")

    def test_one_that_there_is_not(self):
        with self.assertRaisesRegex(ValueError, "the actor has: pair"):
            get(Grouped.remote().seen.options(concurrency_group="trio").remote())
        with self.assertRaisesRegex(ValueError, "concurrency_groups.'none'. is 0"):
            Grouped.options(concurrency_groups={"none": 0})
        with self.assertRaisesRegex(ValueError, "'pair'; concurrency_groups has: trio"):
            Grouped.options(concurrency_groups={"trio": 3}).remote()


@ray.remote
class Flaky:
    def __init__(self):
        self.runs = 0

    @ray.method(max_task_retries=3, retry_exceptions=[KeyError])
    def third_time(self, error=KeyError):
        self.runs += 1
        if self.runs < 3:
            raise error(self.runs)
        return self.runs

    def plain(self):
        self.runs += 1
        raise KeyError(self.runs)


class Options(unittest.TestCase):
    def test_methods_that_are_run_again(self):
        self.assertEqual(get(Flaky.remote().third_time.remote()), 3)
        with self.assertRaisesRegex(ValueError, "1"):
            get(Flaky.remote().third_time.remote(ValueError))
        with self.assertRaisesRegex(KeyError, "1"):
            get(Flaky.remote().plain.remote())
        with self.assertRaisesRegex(KeyError, "3"):
            get(Flaky.remote().plain.options(max_task_retries=2, retry_exceptions=True).remote())

    def test_none_is_as_if_nothing_was_said(self):
        nothing = dict.fromkeys(("num_cpus", "num_returns", "max_retries", "name", "scheduling_strategy", "runtime_env"))
        self.assertEqual(get(ray.remote(**nothing)(abs).remote(-1)), 1)
        self.assertEqual(get(Doubler.options(max_concurrency=None, lifetime=None).remote().double.remote(1)), 2)

    def test_labels_are_checked(self):
        Doubler.options(label_selector={"region": "!in(a, b)"}, fallback_strategy=[{"label_selector": {"x/y": "z"}}])
        for wrong in ({"region": "in(a,, b)"}, {"re!gion": "a"}, {"region": 3}):
            with self.assertRaisesRegex(ValueError, "label_selector"):
                Doubler.options(label_selector=wrong)

    def test_what_is_refused(self):
        reference = ray.put(1)
        with self.assertRaisesRegex(ValueError, "timeout is -1"):
            ray.wait([reference], timeout=-1)
        with self.assertRaisesRegex(ValueError, "an actor is ended by menger.runtime.kill"):
            ray.cancel(Doubler.remote().double.remote(1), force=True)
        with self.assertRaisesRegex(ValueError, "name cannot be an empty string"):
            Doubler.options(name="").remote()
        with self.assertRaisesRegex(TypeError, "num_cpus is 'two'"):
            Doubler.options(num_cpus="two")
        with self.assertRaisesRegex(TypeError, "Inheriting from actor classes"):

            class Child(Doubler):
                pass

    def test_arguments_in_a_list(self):
        self.assertEqual(get(ray.remote(sorted)._remote(args=([1, 2],), kwargs={"reverse": True})), [2, 1])
        self.assertEqual(get(Doubler._remote(num_cpus=1).double._remote((4,))), 8)

    def test_a_serialiser_of_a_class(self):
        class Locked:
            def __init__(self, value):
                self.value, self.lock = value, threading.Lock()

        with self.assertRaises(TypeError):
            ray.put(Locked(3))
        ray.util.register_serializer(Locked, serializer=lambda locked: locked.value, deserializer=Locked)
        self.assertEqual(get(ray.put(Locked(3))).value, 3)
        ray.util.deregister_serializer(Locked)
        with self.assertRaises(TypeError):
            ray.put(Locked(3))

    def test_a_future_of_asyncio(self):
        async def use():
            return await asyncio.gather(*[ray.put(i).as_future() for i in range(5)])

        self.assertEqual(asyncio.run(use()), list(range(5)))

    def test_several_may_await_the_same(self):
        async def use(reference):
            return await asyncio.gather(reference, reference, reference)

        self.assertEqual(asyncio.run(use(ray.put(3))), [3, 3, 3])


if __name__ == "__main__":
    unittest.main()
