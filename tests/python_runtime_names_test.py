"""Names of Ray's around tasks and actors: results as they come, marks, what cannot be sent, where to run, what init takes."""

import collections
import contextlib
import dataclasses
import io
import os
import pickle
import threading
import time
import typing
import unittest
import warnings

from python_runtime import PATIENCE_S, check_library, get, ray

from menger.runtime.util import accelerators, annotations, metrics, scheduling_strategies as strategies
from menger.runtime.util.debug import disable_log_once_globally, enable_periodic_logging, log_once


def setUpModule():
    check_library()
    ray.init(
        num_cpus=2,
        runtime_env={"worker_process_setup_hook": begin},
        local_mode=False,
        labels={"region": "here"},
        _temp_dir="/nowhere",
    )


tearDownModule = ray.shutdown


def begin():
    os.environ["BEGUN"] = "yes"


@ray.remote
def square(x):
    return x * x


@ray.remote
class Squarer:
    def square(self, x):
        return x * x


class AsTheyCome(unittest.TestCase):
    def test_those_that_are_ready_come_first(self):
        @ray.remote
        class Gate:
            def __init__(self):
                self.open = threading.Event()

            def pass_through(self, x):
                self.open.wait(PATIENCE_S)
                return x

            def let_through(self):
                self.open.set()

        gate = Gate.options(max_concurrency=2).remote()
        late, early = gate.pass_through.remote("late"), square.remote(3)
        come = ray.util.as_completed([late, early], chunk_size=1)
        self.assertEqual(next(come), 9)
        gate.let_through.remote()
        self.assertEqual(list(come), ["late"])
        self.assertEqual(list(ray.util.as_completed([early], yield_obj_refs=True)), [early])

    def test_calls_of_all_items(self):
        self.assertEqual(sorted(ray.util.map_unordered(square, range(30), backpressure_size=4, chunk_size=2)), [x * x for x in range(30)])
        squarer = Squarer.remote()
        self.assertEqual(sorted(ray.util.map_unordered(squarer.square, range(5), backpressure_size=None)), [0, 1, 4, 9, 16])
        with self.assertRaisesRegex(ValueError, "backpressure_size is 1; it must be at least chunk_size, which is 10"):
            ray.util.map_unordered(square, [], backpressure_size=1)
        with self.assertRaisesRegex(ValueError, "chunk_size is 0; it must be a whole number from 1 on"):
            next(ray.util.as_completed([1], chunk_size=0))


class Marks(unittest.TestCase):
    def test_change_only_the_documentation(self):
        @annotations.PublicAPI(stability="alpha")
        def early():
            """Does it."""
            return 1

        @annotations.DeveloperAPI
        class Inner:
            pass

        self.assertEqual((early(), early.__doc__.splitlines()[0]), (1, "Does it."))
        self.assertIn("Alpha", early.__doc__)
        self.assertIsInstance(Inner(), Inner)
        with self.assertRaisesRegex(ValueError, "stability is 'new'"):
            annotations.PublicAPI(stability="new")

    def test_warn_of_what_is_deprecated(self):
        @annotations.Deprecated(message="use the other", warning=True)
        class Old:
            pass

        with self.assertWarnsRegex(annotations.RayDeprecationWarning, "use the other"):
            Old()
        self.assertIn("use the other", Old.__doc__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            annotations.Deprecated(lambda: 1)()

    def test_log_once(self):
        self.assertEqual([log_once("names"), log_once("names"), log_once("others")], [True, False, True])
        enable_periodic_logging(0.0)
        self.assertEqual([log_once("often"), log_once("often")], [True, True])
        disable_log_once_globally()
        self.assertFalse(log_once("often"))


class CannotBeSent(unittest.TestCase):
    def test_the_innermost_is_to_blame(self):
        lock = threading.Lock()

        def uses_it():
            return lock

        class Holder:
            def __init__(self):
                self.inner = uses_it

        said = io.StringIO()
        is_fine, blamed = ray.util.inspect_serializability(Holder(), name="holder", print_file=said)
        self.assertFalse(is_fine)
        self.assertEqual([(each.obj, each.name, each.parent) for each in blamed], [(lock, "lock", uses_it)])
        self.assertIn("'lock'", said.getvalue())
        self.assertEqual(ray.util.inspect_serializability([1, 2], print_file=said), (True, set()))


class Places(unittest.TestCase):
    def test_the_only_node_is_where_all_runs(self):
        node = ray.get_runtime_context().get_node_id()
        for strategy in (
            strategies.NodeAffinitySchedulingStrategy(node, soft=False),
            strategies.NodeAffinitySchedulingStrategy("elsewhere", soft=True),
            strategies.NodeLabelSchedulingStrategy({"region": strategies.In("here")}, soft={"zone": strategies.Exists()}),
        ):
            self.assertEqual(get(square.options(scheduling_strategy=strategy).remote(2)), 4)
        elsewhere = strategies.NodeAffinitySchedulingStrategy("elsewhere", soft=False)
        with self.assertRaisesRegex(ValueError, "node_id is 'elsewhere'; the only node is"):
            square.options(scheduling_strategy=elsewhere).remote(2)
        with self.assertRaisesRegex(ValueError, "labels are {'region': 'here'}"):
            strategies.NodeLabelSchedulingStrategy({"region": "here"})


class Metrics(unittest.TestCase):
    def test_take_what_they_are_told(self):
        counter = metrics.Counter("steps", description="of all", tag_keys=("kind",)).set_default_tags({"kind": "small"})
        counter.inc()
        counter.inc(2, tags={"kind": "large"})
        metrics.Gauge("depth").set(3)
        metrics.Histogram("seconds", boundaries=[0.1, 1]).observe(0.5)
        self.assertEqual(get(ray.remote(lambda one: one.info).remote(counter)), counter.info)
        for wrong, says in (
            (lambda: counter.inc(-1), "value is -1; a counter grows"),
            (lambda: counter.inc(tags={"colour": "red"}), "'colour' is none of the metric 'steps', which has: kind"),
            (lambda: metrics.Counter("x", tag_keys=("kind",)).inc(), "needs a value for the tag 'kind'"),
            (lambda: metrics.Gauge(""), "the name of a metric is ''"),
            (lambda: metrics.Histogram("x", boundaries=[]), "boundaries are \\[\\]"),
        ):
            with self.assertRaisesRegex(ValueError, says):
                wrong()


class Modules(unittest.TestCase):
    def test_by_their_names(self):
        self.assertEqual(ray.cloudpickle.loads(ray.cloudpickle.dumps({1: 2})), {1: 2})
        self.assertIs(ray.types.ObjectRef, ray.ObjectRef)
        self.assertIs(ray.ObjectID, ray.ObjectRef)
        self.assertIsInstance(square, ray.remote_function.RemoteFunction)
        with self.assertRaises(AttributeError):
            ray.nothing_of_that_name
        for name in ("OwnerDiedError", "ObjectFreedError", "ObjectReconstructionFailedError"):
            self.assertTrue(issubclass(getattr(ray.exceptions, name), ray.exceptions.ObjectLostError))

    def test_in_annotations(self):
        def first(refs: list[ray.ObjectRef[int]], actor: ray.ActorHandle[Squarer]) -> ray.ObjectRefGenerator[int]:
            return refs[0]

        self.assertIs(first.__annotations__["return"].__origin__, ray.ObjectRefGenerator)
        self.assertEqual(get(first([square.remote(3)], None)), 9)
        self.assertGreaterEqual(tuple(map(int, ray.__version__.split("."))), (2, 50))

    def test_workers_begin_with_their_hook(self):
        self.assertEqual(get(ray.remote(os.getenv).remote("BEGUN")), "yes")
        self.assertNotIn("BEGUN", os.environ)
        for wrong in (5, "begin"):
            with self.assertRaisesRegex(TypeError, "worker_process_setup_hook'] is .*; it must be a function"):
                square.options(runtime_env={"worker_process_setup_hook": wrong})

    def test_options_without_effect(self):
        told = {"accelerator_type": accelerators.NVIDIA_L4, "enable_task_events": False}
        self.assertEqual(get(square.options(**told).remote(2)), 4)
        squarer = Squarer.options(**told, max_pending_calls=10, allow_out_of_order_execution=True).remote()
        self.assertEqual(get(squarer.square.options(enable_task_events=True).remote(3)), 9)
        with self.assertRaisesRegex(TypeError, "enable_task_events is 'no'; it must be True or False"):
            square.options(enable_task_events="no")

    def test_calls_of_a_process(self):
        self.assertEqual(get(ray.remote(max_calls=1)(abs).remote(-1)), 1)

        @ray.remote(max_calls=2, max_retries=0)  # A call whose process ends before it begins is none that was lost.
        def process():
            return os.getpid()

        calls = collections.Counter(get([process.remote() for _ in range(20)]))
        self.assertEqual(sum(calls.values()), 20)
        self.assertLessEqual(max(calls.values()), 2)
        deadline = time.monotonic() + PATIENCE_S
        while any(os.path.exists(f"/proc/{each}") for each in calls if calls[each] == 2):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        with self.assertRaisesRegex(ValueError, "'max_calls' only accepts None, 0 or a positive integer, .* It is -1"):
            ray.remote(max_calls=-1)(abs)


class Says:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Says({self.name})"

    def say(self):
        print("hello")


class BadlyShown(Says):
    def __repr__(self):
        raise RuntimeError("no repr")


class Lines(unittest.TestCase):
    def test_begin_with_how_the_actor_shows_itself(self):
        for kind, begin_with in ((Says, "(Says(Ann) pid="), (BadlyShown, "(BadlyShown pid=")):
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                actor = ray.remote(kind).remote("Ann")
                get(actor.say.remote())
                wait_for(lambda: "hello" in shown.getvalue())
            self.assertIn(begin_with, shown.getvalue())


def wait_for(is_so):
    end = threading.Event()
    for _ in range(100 * PATIENCE_S):
        if is_so():
            return
        end.wait(0.01)
    raise AssertionError("it did not become so")


@dataclasses.dataclass
class Part:
    names: typing.List[str]
    is_small: bool


@dataclasses.dataclass
class Whole:
    parts: typing.List[Part]
    other: typing.Optional[Part] = None


class OfRaysOwn(unittest.TestCase):
    def test_a_runtime_env_keeps_dataclasses(self):
        environment = ray.runtime_env.RuntimeEnv(env_vars={"a": "b"})
        whole = Whole([Part(["x", "y"], True), Part([], False)], Part(["z"], True))
        environment.set("whole", whole)
        again = ray.runtime_env.RuntimeEnv.deserialize(environment.serialize())
        self.assertEqual(again.get("whole", data_class=Whole), whole)
        self.assertEqual((again.get("env_vars"), again.get("nothing", 1), again.to_dict()), ({"a": "b"}, 1, dict(environment)))
        with self.assertRaisesRegex(TypeError, "odd is .*; it must be a dataclass, or what JSON can say"):
            environment.set("odd", object())

    def test_a_task_error_can_be_made(self):
        error = ray.exceptions.RayTaskError(function_name="f", traceback_str="what was", cause=KeyError("k"))
        both = pickle.loads(pickle.dumps(error.make_dual_exception_instance()))
        self.assertIsInstance(both, KeyError)
        self.assertEqual((str(both), both.cause.args), ("what was", ("k",)))
        self.assertIs(both.as_instanceof_cause(), both)

    def test_cloudpickle_says_what_cannot_be_pickled(self):
        lock = threading.Lock()

        def uses_it():
            return lock

        self.assertEqual(pickle.loads(ray.cloudpickle.dumps_debug(1)), 1)
        with self.assertRaisesRegex(TypeError, "'lock' of .*uses_it"):
            ray.cloudpickle.dumps_debug(uses_it)

        class HasMethod:
            def use(self):
                return lock

        can_be_sent, found = ray.util.inspect_serializability(HasMethod, print_file=io.StringIO())
        self.assertEqual((can_be_sent, [each.obj for each in found]), (False, [lock]))

    def test_coroutines_are_methods(self):
        async def alone():
            pass

        with self.assertRaisesRegex(ValueError, "'async def' should not be used for remote tasks, as 'alone' does"):
            ray.remote(alone)

    def test_calls_keep_their_order_where_that_can_be(self):
        class Several:
            async def wait(self):
                pass

        self.assertEqual(get(ray.remote(allow_out_of_order_execution=False)(Says).remote("x").__ray_ready__.remote()), True)
        for wrong in (ray.remote(Several), ray.remote(max_concurrency=2)(Says)):
            with self.assertRaisesRegex(ValueError, "allow_out_of_order_execution is False"):
                wrong.options(allow_out_of_order_execution=False).remote(*([] if wrong.__name__ == "Several" else ["x"]))

    def test_more_than_a_thousand_calls_at_once_are_a_thousand(self):
        self.assertEqual(get(ray.remote(max_concurrency=100_000)(Says).remote("x").__ray_ready__.remote()), True)


if __name__ == "__main__":
    unittest.main()
