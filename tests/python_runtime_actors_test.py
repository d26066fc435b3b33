"""Python programs written for Ray's names, on menger.runtime: actors."""

import asyncio
import os
import signal
import threading
import time
import unittest

import numpy as np
from python_runtime import PATIENCE_S, check_library, get, ray


def setUpModule():
    check_library()
    ray.init(num_cpus=2)


tearDownModule = ray.shutdown


@ray.remote
def add(x, y=1):
    return x + y


@ray.remote
class Counter:
    def __init__(self, value=0):
        self.value, self.order = value, []

    def add(self, by=1):
        self.value += by
        self.order.append(by)
        return self.value

    def seen(self):
        return self.order

    @ray.method(num_returns=2)
    def both(self):
        return self.value, -self.value

    def process(self):
        return os.getpid()

    def fail(self):
        raise KeyError("no such thing")

    async def later(self, by):
        await asyncio.sleep(0.001)
        return self.add(by)


class Actors(unittest.TestCase):
    def test_calls_are_done_in_order(self):
        counter = Counter.remote(10)
        results = [counter.add.remote(i) for i in range(1000)]
        self.assertEqual(get(results[-1]), 10 + 499_500)
        self.assertEqual(get(counter.seen.remote()), list(range(1000)))
        self.assertEqual(get(list(counter.both.remote())), [499_510, -499_510])
        self.assertEqual(get(counter.add.options(name="one more").remote(by=add.remote(1))), 499_512)

    def test_each_has_a_process(self):
        one, other = Counter.remote(), Counter.remote()
        self.assertNotEqual(*get([one.process.remote(), other.process.remote()]))

    def test_an_exception_leaves_it_alive(self):
        counter = Counter.remote()
        with self.assertRaises(KeyError):
            get(counter.fail.remote())
        self.assertEqual(get(counter.add.remote()), 1)
        with self.assertRaises(AttributeError):
            counter.subtract  # noqa: B018

    def test_handles_travel(self):
        @ray.remote
        def use(handles):
            return ray.get([handle.add.remote(5) for handle in handles])

        counter = Counter.remote()
        self.assertEqual(get(use.remote([counter, counter])), [5, 10])

    def test_an_actor_makes_actors_and_tasks(self):
        @ray.remote
        class Parent:
            def __init__(self):
                self.child = Counter.remote(100)

            def work(self):
                return ray.get(self.child.add.remote(ray.put(ray.get(add.remote(1)))))

        self.assertEqual(get(Parent.remote().work.remote()), 102)

    def test_names(self):
        counter = Counter.options(name="the counter").remote(7)
        get(counter.add.remote())

        @ray.remote
        def find():
            return ray.get(ray.get_actor("the counter").add.remote())

        self.assertEqual(get(find.remote()), 9)
        self.assertEqual(get(list(ray.get_actor("the counter").both.remote())), [9, -9])
        with self.assertRaises(ValueError):
            Counter.options(name="the counter").remote()
        same = Counter.options(name="the counter", get_if_exists=True).remote()
        self.assertEqual(get(same.add.remote()), 10)
        with self.assertRaises(ValueError):
            ray.get_actor("nobody")

    def test_who_asks_at_once_gets_the_same(self):
        @ray.remote(num_cpus=0)
        def count(name):
            counter = Counter.options(name=name, get_if_exists=True, lifetime="detached").remote()
            return get(counter.add.remote())

        for i in range(10):
            self.assertEqual(sorted(get([count.remote(f"shared {i}") for _ in range(6)])), list(range(1, 7)))

    def test_without_handles_it_ends(self):
        counter = Counter.remote()
        process = get(counter.process.remote())
        del counter
        end = time.monotonic() + PATIENCE_S
        while os.path.exists(f"/proc/{process}") and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse(os.path.exists(f"/proc/{process}"))

    def test_kill(self):
        counter = Counter.remote()
        get(counter.add.remote())
        ray.kill(counter)
        with self.assertRaises(ray.exceptions.RayActorError):
            get(counter.add.remote())
        with self.assertRaises(ValueError):
            ray.kill(add)

    def test_restarts(self):
        counter = Counter.options(max_restarts=1, max_task_retries=1).remote(3)
        self.assertEqual(get(counter.add.remote()), 4)
        os.kill(get(counter.process.remote()), signal.SIGKILL)
        self.assertEqual(get(counter.add.remote()), 4)
        os.kill(get(counter.process.remote()), signal.SIGKILL)
        with self.assertRaises(ray.exceptions.ActorDiedError):
            get(counter.add.remote())

    def test_a_constructor_that_fails(self):
        @ray.remote
        class Broken:
            def __init__(self):
                raise RuntimeError("no engine")

            def run(self):
                pass

        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "no engine"):
            get(Broken.remote().run.remote())

    def test_a_call_that_ends_the_process_of_an_actor_that_is_made_again(self):
        @ray.remote(max_restarts=1)
        class Mortal:
            def end(self):
                os._exit(1)

            def say(self):
                return "here"

        mortal = Mortal.remote()
        with self.assertRaisesRegex(ray.exceptions.ActorUnavailableError, "exit status 1"):
            get(mortal.end.remote())
        self.assertEqual(get(mortal.say.remote()), "here")
        with self.assertRaises(ray.exceptions.ActorDiedError):
            get(mortal.end.remote())

    def test_calls_wait_for_an_actor_that_is_made_again(self):
        """Ray's fail where max_task_retries is 0: it cannot know whether they have begun."""

        @ray.remote(max_restarts=1)
        class Slow:
            def __init__(self):
                if ray.get_runtime_context().was_current_actor_reconstructed:
                    time.sleep(0.5)

            def end(self):
                os._exit(1)

            def say(self, text):
                return text

        slow = Slow.remote()
        ended, before = slow.end.remote(), slow.say.remote("before")
        with self.assertRaises(ray.exceptions.ActorUnavailableError):
            get(ended)
        self.assertEqual(get([before, slow.say.remote("meanwhile")]), ["before", "meanwhile"])

    def test_an_attribute_of_the_name_of_a_method(self):
        @ray.remote
        class Switch:
            def __init__(self):
                self.on = False

            def on(self):
                return self.on

        self.assertIs(get(Switch.remote().on.remote()), False)

    def test_what_the_class_itself_has(self):
        @ray.remote
        class Scaled:
            SCALE = 3

            @staticmethod
            def scaled(x):
                return x * Scaled.SCALE

            def times(self, x):
                return Scaled.scaled(x)

        @ray.remote
        def scale():
            return Scaled.SCALE

        self.assertEqual((Scaled.SCALE, Scaled.scaled(2)), (3, 6))
        self.assertEqual(get(Scaled.remote().times.remote(2)), 6)
        self.assertEqual(get(scale.remote()), 3)
        with self.assertRaises(AttributeError):
            Scaled.OTHER

    def test_a_name_that_is_none(self):
        with self.assertRaisesRegex(ValueError, "None"):
            ray.get_actor(None)

    def test_options_of_the_wrong_type(self):
        for option in ("max_restarts", "max_task_retries"):
            with self.assertRaisesRegex(TypeError, f"{option}.* 0.5"):
                Counter.options(**{option: 0.5})
            with self.assertRaisesRegex(ValueError, f"{option}.* It is -2"):
                Counter.options(**{option: -2})
        with self.assertRaisesRegex(TypeError, "'max_retries' must be .*: it is '3'"):
            add.options(max_retries="3")
        with self.assertRaisesRegex(ValueError, "get_if_exists needs a name"):
            Counter.options(get_if_exists=True).remote()
        with self.assertRaisesRegex(TypeError, "name is 3"):
            add.options(name=3)

    def test_wrong_arguments_are_an_error_of_the_caller(self):
        with self.assertRaisesRegex(TypeError, "Counter.* takes 1 .* 2 were given"):
            Counter.remote(1, 2)
        counter = Counter.options(name="counted").remote()
        found = ray.get_actor("counted")

        @ray.remote
        def ask(actor):
            try:
                actor.add.remote(1, 2)
            except TypeError:
                return actor.add.remote(by=3)

        for handle in (counter, found):
            with self.assertRaisesRegex(TypeError, "add.* takes 1 .* 2 were given"):
                handle.add.remote(1, 2)
            with self.assertRaisesRegex(TypeError, "several values for argument 'by'"):
                handle.add.remote(1, by=2)
            with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'other'"):
                handle.add.remote(other=2)
        self.assertEqual(get(get(ask.remote(counter))), 3)

    def test_methods_of_all_kinds_take_what_they_take(self):
        @ray.remote
        class Kinds:
            @staticmethod
            def fixed(x):
                return x

            @classmethod
            def of_class(cls, x):
                return x

            def many(self, *xs, last, **others):
                return xs, last, others

            def only_by_place(self, x, /, **others):
                return x, others

            def __call__(self, x):
                return x

        kinds = Kinds.remote()
        asked = [kinds.fixed.remote(1), kinds.of_class.remote(x=2), kinds.many.remote(1, 2, last=3, x=4)]
        asked += [kinds.only_by_place.remote(1, x=2), kinds.__call__.remote(5)]
        self.assertEqual(get(asked), [1, 2, ((1, 2), 3, {"x": 4}), (1, {"x": 2}), 5])
        for wrong in (kinds.fixed.remote, lambda: kinds.many.remote(1), lambda: kinds.only_by_place.remote(x=1)):
            with self.assertRaisesRegex(TypeError, "misses 1 arguments"):
                wrong()

    def test_methods_that_are_coroutines(self):
        counter = Counter.remote()
        self.assertEqual(get([counter.later.remote(1) for _ in range(10)]), list(range(1, 11)))


@ray.remote
class Gate:
    """Calls that wait for other calls of the same actor."""

    def __init__(self):
        self.event, self.array = threading.Event(), None

    def pass_through(self):
        return self.event.wait(60)

    def open(self):
        self.event.set()

    def keep(self, array):
        self.array = array

    def total(self):
        return float(self.array.sum())

    def fail(self, text):
        raise KeyError(text)


@ray.remote
class AsyncGate:
    def __init__(self):
        self.event, self.begun = asyncio.Event(), []

    async def pass_through(self, number):
        self.begun.append(number)
        await self.event.wait()
        return number

    def open(self):
        self.event.set()
        return self.begun

    def begun_by_now(self):
        return self.begun

    async def fail(self, text):
        await asyncio.sleep(0)
        raise KeyError(text)


class Concurrency(unittest.TestCase):
    def test_threads_keep_what_is_theirs(self):
        @ray.remote(max_concurrency=2)
        class Remembering:
            def __init__(self):
                self.local = threading.local()

            def is_first(self):
                first = not hasattr(self.local, "known")
                self.local.known = True
                return threading.get_ident(), first

        actor = Remembering.remote()
        seen = [call for _ in range(20) for call in get([actor.is_first.remote() for _ in range(10)])]
        for thread in {thread for thread, _ in seen}:
            self.assertEqual([first for each, first in seen if each == thread].count(True), 1)

    def test_threads_meet(self):
        gate = Gate.options(max_concurrency=4).remote()
        waiting = [gate.pass_through.remote() for _ in range(3)]
        self.assertEqual(ray.wait(waiting, timeout=0.2)[0], [])
        get(gate.open.remote())
        self.assertEqual(get(waiting), [True] * 3)

    def test_many_calls_of_threads(self):
        counter = Gate.options(max_concurrency=8).remote()
        get(counter.keep.remote(np.ones(200_000)))
        for _ in range(20):  # What would be written over it, were it free.
            get(add.remote(np.zeros(200_000), 5))
        self.assertEqual(get([counter.total.remote() for _ in range(500)]), [200_000.0] * 500)
        for text in ("one", "two"):
            with self.assertRaisesRegex(KeyError, text):
                get(counter.fail.remote(text))

    def test_coroutines_meet_and_begin_in_order(self):
        gate = AsyncGate.remote()
        waiting = [gate.pass_through.remote(i) for i in range(200)]
        self.assertEqual(get(gate.open.remote()), list(range(200)))
        self.assertEqual(get(waiting), list(range(200)))
        with self.assertRaisesRegex(KeyError, "low"):
            get(gate.fail.remote("low"))

    def test_a_coroutine_waits_for_a_reference(self):
        @ray.remote
        class Asks:
            async def ask(self, references):
                return sum([await reference for reference in references])

        self.assertEqual(get(Asks.remote().ask.remote([add.remote(1), add.remote(2)])), 5)

    def test_a_call_whose_argument_is_not_there_holds_none_back(self):
        gate = AsyncGate.remote()
        second = gate.pass_through.remote(gate.pass_through.remote(1))
        while get(gate.begun_by_now.remote()) != [1]:
            time.sleep(0.01)
        get(gate.open.remote())
        self.assertEqual(get(second), 1)

    def test_tasks_that_a_coroutine_leaves_go_on(self):
        @ray.remote
        class Leaves:
            def __init__(self):
                self.done = []

            async def leave(self, count):
                self.tasks = [asyncio.ensure_future(self.later(i)) for i in range(count)]

            async def later(self, number):
                await asyncio.sleep(0.01)
                self.done.append((number, time.monotonic()))

            async def seen(self):
                return self.done

        leaves = Leaves.remote()
        for _ in range(2):
            get(leaves.leave.remote(3))
            time.sleep(0.3)  # Nobody calls meanwhile.
            asked = time.monotonic()
            done = get(leaves.seen.remote())
            self.assertEqual([number for number, _ in done[-3:]], [0, 1, 2])
            self.assertLess(done[-1][1], asked)

    def test_calls_that_a_coroutine_ends_by_force(self):
        @ray.remote
        class Ends:
            async def interrupt(self):
                await asyncio.sleep(0)
                raise KeyboardInterrupt

            async def cancel_others(self):
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()

            async def wait(self):
                await asyncio.sleep(60)

            async def one(self):
                return 1

        ends = Ends.remote()
        with self.assertRaises(BaseException):
            get(ends.interrupt.remote())
        waiting = [ends.wait.remote() for _ in range(3)]
        get(ends.cancel_others.remote())
        for each in waiting:
            with self.assertRaises(BaseException):
                get(each)
        self.assertEqual(get([ends.one.remote() for _ in range(100)]), [1] * 100)

    def test_nested_calls_of_coroutines_are_told_apart(self):
        @ray.remote(max_restarts=1, max_task_retries=1)
        class Nests:
            async def nest(self, first):
                return [await add.remote(first + i) for i in range(5)]

        nests = Nests.remote()
        results = get([nests.nest.remote(100 * i) for i in range(40)])
        self.assertEqual(results, [[100 * i + j + 1 for j in range(5)] for i in range(40)])

    def test_thousands_of_coroutines_at_once(self):
        @ray.remote(max_concurrency=3000)
        class Crowd:
            def __init__(self):
                self.now = self.most = 0
                self.crowded = asyncio.Event()

            async def stay(self):
                self.now += 1
                self.most = max(self.most, self.now)
                if self.now > 1000:
                    self.crowded.set()
                await self.crowded.wait()
                self.now -= 1

            async def counts(self):
                return self.now, self.most

        crowd = Crowd.remote()
        get([crowd.stay.remote() for _ in range(3000)])
        now, most = get(crowd.counts.remote())
        self.assertEqual(now, 0)
        self.assertLessEqual(most, 1024)

    def test_what_it_may_be(self):
        for wrong in (0, 1.5, "two"):
            with self.assertRaisesRegex(ValueError, "max_concurrency is .*; it must be a whole number of at least 1"):
                Gate.options(max_concurrency=wrong)


if __name__ == "__main__":
    unittest.main()
