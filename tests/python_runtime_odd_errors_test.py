"""Exceptions that are hard to carry, and numbers that are no amounts: who asks is told, and nothing hangs."""

import functools
import math
import unittest
import unittest.mock

from python_runtime import check_library, get, ray

NAN, INFINITE = math.nan, math.inf


def setUpModule():
    check_library()
    ray.init(num_cpus=2)


tearDownModule = ray.shutdown


class Needs(Exception):
    def __init__(self, *, reason):
        super().__init__(reason)


class Unpicklable(Exception):
    def __reduce__(self):
        raise KeyboardInterrupt("no pickles")


class Unshowable(Exception):
    def __getattribute__(self, name):
        raise RuntimeError(name)


class Properties(Exception):
    @property
    def cause(self):
        raise RuntimeError("cause")


class Sealed(Exception):
    def __init_subclass__(cls):
        raise TypeError("sealed")


class Bare(BaseException):
    pass


HARD = {
    "Needs": lambda: Needs(reason="why"),
    "Unpicklable": Unpicklable,
    "Unshowable": Unshowable,
    "Properties": lambda: Properties("why"),
    "Sealed": lambda: Sealed("why"),
    "Bare": lambda: Bare("why"),
    "ExceptionGroup": lambda: ExceptionGroup("several", [ValueError("why"), Needs(reason="why")]),
}


@ray.remote
def fail(make):
    raise make()


@ray.remote
def fail_late(make):
    yield 1
    raise make()


@ray.remote
class Fails:
    def fail(self, make):
        raise make()

    def lives(self):
        return True


@ray.remote
class FailsOnItsLoop:
    async def fail(self, make):
        raise make()

    async def lives(self):
        return True


@ray.remote
def one():
    return 1


class OddExceptions(unittest.TestCase):
    def assert_told(self, name, ask):
        with self.assertRaises(ray.exceptions.RayTaskError) as raised:
            ask()
        self.assertIn(name, str(raised.exception))

    def test_of_tasks_are_told_by_their_names(self):
        for name, make in HARD.items():
            with self.subTest(name):
                self.assert_told(name, lambda: get(fail.remote(make)))
                self.assert_told(name, lambda: get(fail.options(max_retries=0, retry_exceptions=[ValueError]).remote(make)))

    def test_of_generators_come_after_what_was_yielded(self):
        for name, make in HARD.items():
            with self.subTest(name):
                items = fail_late.remote(make)
                self.assertEqual(get(next(items)), 1)
                self.assert_told(name, lambda: get(next(items)))
                if name == "Bare":
                    continue  # Is no Exception: the call has failed, and nothing of it is there.
                items = iter(get(fail_late.options(num_returns="dynamic").remote(make)))
                self.assertEqual(get(next(items)), 1)
                self.assert_told(name, lambda: get(next(items)))

    def test_of_methods_leave_their_actors_alive(self):
        for actor in (Fails.remote(), FailsOnItsLoop.remote()):
            for name, make in HARD.items():
                with self.subTest(name):
                    self.assert_told(name, lambda: get(actor.fail.remote(make)))
                    self.assertTrue(get(actor.lives.remote()))


    def test_keep_their_class_and_all_of_their_text(self):
        @ray.remote(max_retries=0)
        def raises(text):
            try:
                raise ValueError(text)
            except ValueError as error:
                raise MemoryError("outer") from error

        with self.assertRaisesRegex(MemoryError, r"(?s)a\\0b.*outer"):
            get(raises.remote("a\0b"))


class OddThings(unittest.TestCase):
    def test_cannot_be_waited_for(self):
        ready = ray.put(1)
        for ask, error in ((ray.get, ValueError), (ray.wait, TypeError)):
            for wrong, kind in ((5, "int"), ("x", "str"), ([ready, None], "a list whose item 1 is NoneType"), ([[ready]], "item 0 is list")):
                with self.assertRaisesRegex(error, f"takes .*; this is .*{kind}"):
                    ask(wrong)

    def test_an_actor_ends_whatever_its_end_raises(self):
        for end in (lambda self: 1 / 0, lambda self: ray.actor.exit_actor()):

            class Ends:
                __ray_shutdown__ = end

                def leave(self):
                    ray.actor.exit_actor()

            with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "the actor ended itself"):
                get(ray.remote(Ends).remote().leave.remote())


class OddNumbers(unittest.TestCase):
    def test_are_no_timeouts(self):
        ready = ray.put(1)
        for ask in (lambda timeout: ray.get(ready, timeout=timeout), lambda timeout: ray.wait([ready], timeout=timeout)):
            for wrong in ("1", True, [1], 1j):
                with self.assertRaisesRegex(TypeError, "timeout is .*; it must be a number of seconds"):
                    ask(wrong)
            with self.assertRaisesRegex(ValueError, "timeout is nan; it must be a number of seconds"):
                ask(NAN)
            for long in (INFINITE, 1e300, 10**400):
                self.assertTrue(ask(long))
        with self.assertRaisesRegex(ValueError, "timeout is -inf; it must not be negative"):
            ray.wait([ready], timeout=-INFINITE)
        for wrong in ("1", True, 1.0, None):
            with self.assertRaisesRegex(TypeError, "num_returns is .*; it must be a whole number"):
                ray.wait([ready], num_returns=wrong)

    def test_are_no_options(self):
        for option in ("num_cpus", "num_gpus", "memory"):
            for wrong in (NAN, INFINITE, -1, 10**30):
                with self.assertRaisesRegex(ValueError, f"{option} is .*; it must"):
                    one.options(**{option: wrong})
            for wrong in ("1", True, [1]):
                with self.assertRaisesRegex(TypeError, f"{option} is .*; it must be a number"):
                    one.options(**{option: wrong})
        for option in ("num_returns", "max_retries", "_generator_backpressure_num_objects", "placement_group_bundle_index"):
            for wrong in (NAN, INFINITE, "1", True, 1.5):
                with self.assertRaisesRegex((TypeError, ValueError), f"{option}.* (must be|only accepts)"):
                    one.options(**{option: wrong})
        for wrong in (1, "", "a b", "a=b", "\0"):
            with self.assertRaisesRegex(ValueError, "resources has the name .*; it must be a text"):
                one.options(resources={wrong: 1})
        with self.assertRaisesRegex(ValueError, r"resources\['x'\] is nan; it must be a number up to"):
            one.options(resources={"x": NAN})
        with self.assertRaisesRegex(ValueError, "quantity of resource x cannot go beyond 0.0001: it is 1e-05"):
            one.options(resources={"x": 0.00001})
        with self.assertRaisesRegex(ValueError, "quantity of resource num_cpus cannot go beyond 0.0001"):
            one.options(num_cpus=0.00009)

    def test_are_no_options_of_init(self):
        ray.shutdown()
        try:
            for option in ("num_cpus", "num_gpus", "object_store_memory", "worker_memory"):
                for wrong in (NAN, INFINITE, -1, 10**30, "1", True, [1]):
                    with self.assertRaisesRegex((TypeError, ValueError), f"{option} is .*; it must"):
                        ray.init(**{option: wrong})
            for small in (0, 10, 2**20 - 1):
                with self.assertRaisesRegex(ValueError, f"object_store_memory is {small} bytes; it must be at least 1048576"):
                    ray.init(object_store_memory=small)
            with ray.init(num_cpus=1, object_store_memory=2**20):
                self.assertEqual(len(get(echo.remote(ray.put(bytes(200_000))))), 200_000)
            with self.assertRaisesRegex(TypeError, "object_spilling_directory is 5; it must be the path of a folder"):
                ray.init(object_spilling_directory=5)
        finally:
            ray.init(num_cpus=2, ignore_reinit_error=True)


class NotMadeByHand(unittest.TestCase):
    def test_references_are_what_calls_give(self):
        with unittest.mock.patch("sys.unraisablehook") as ignored:
            for given in ((b"x" * 28,), ()):
                with self.assertRaisesRegex(TypeError, "an ObjectRef is what calls and put give"):
                    ray.ObjectRef(*given)
        ignored.assert_not_called()

    def test_functions_and_classes_alone_are_remote(self):
        for wrong in (functools.partial(max, 1), 5, ray.remote(max)):
            with self.assertRaisesRegex(TypeError, "remote takes a function or a class"):
                ray.remote(wrong)
            with self.assertRaisesRegex(TypeError, "remote takes a function or a class"):
                ray.remote(num_cpus=1)(wrong)


class NoNumber:
    def __reduce__(self):
        return int, ("x",)


@ray.remote
def echo(value):
    return value


@ray.remote
def one():
    return 1


@ray.remote
class Echo:
    def __init__(self, *values):
        self.values = values

    def one(self):
        return 1

    def two(self, value):
        return value


class Arguments(unittest.TestCase):
    def test_that_cannot_be_read_are_told_of_the_call_that_has_them(self):
        get([one.remote() for _ in range(10)])
        with self.assertRaisesRegex(ValueError, r"^ray::echo\(\)"):
            get(echo.remote(NoNumber()))
        actor = Echo.remote()
        get(actor.one.remote())
        with self.assertRaisesRegex(ValueError, r"^ray::Echo\.two\(\)"):
            get(actor.two.remote(NoNumber()))
        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, r"ray::Echo\.__init__\(\)"):
            get(Echo.remote(NoNumber()).one.remote())


if __name__ == "__main__":
    unittest.main()
