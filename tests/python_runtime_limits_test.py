"""Python programs written for Ray's names, on menger.runtime: what calls may ask for, and what errors say."""

import os
import signal
import threading
import time
import unittest

from python_runtime import check_library, get, ray

from menger.runtime.util.placement_group import placement_group, validate_placement_group
from menger.runtime.util.scheduling_strategies import PlacementGroupSchedulingStrategy

MIB = 2**20
LONG = "r" * 60_000


def setUpModule():
    check_library()
    ray.init(num_cpus=2, _memory=100 * MIB, resources={LONG: 2}, runtime_env={"env_vars": {"OF_INIT": "a:${HOME}:${NOWHERE}:b"}})


tearDownModule = ray.shutdown


@ray.remote
class Gate:
    def __init__(self):
        self.opened = threading.Event()

    def process(self):
        return os.getpid()

    def pass_through(self):
        self.opened.wait()

    def fail(self):
        raise KeyError("here")

    def end_on_a_thread(self):
        raised = []

        def end():
            try:
                ray.actor.exit_actor()
            except RuntimeError as error:
                raised.append(error)

        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
        return str(raised[0])


class Memory(unittest.TestCase):
    def test_is_counted(self):
        @ray.remote(memory=60 * MIB)
        def left():
            return ray.available_resources()["memory"]

        self.assertEqual(ray.cluster_resources()["memory"], 100 * MIB)
        self.assertEqual(get(left.remote()), 40 * MIB)

    def test_what_needs_more_than_there_is_waits(self):
        with self.assertWarnsRegex(UserWarning, "'getpid' waits for what the machine does not have: memory: needs 1.05906e[+]08"):
            reference = ray.remote(memory=101 * MIB)(os.getpid).remote()
        self.assertEqual(ray.wait([reference], timeout=0.2)[0], [])

    def test_parts_of_several_accelerators_are_refused_where_there_are_none_at_all(self):
        for wanted in ({"num_gpus": 1.5}, {"resources": {"TPU": 2.5}}):
            for remote in (ray.remote(**wanted)(os.getpid), ray.remote(**wanted)(threading.Event)):
                with self.assertRaisesRegex(ValueError, "it must be a whole number, or less than 1"):
                    remote.remote()

    def test_is_set_aside_by_placement_groups(self):
        group = placement_group([{"CPU": 1, "memory": 30 * MIB}])
        self.assertTrue(group.wait(10))
        self.assertEqual(ray.available_resources()["memory"], 70 * MIB)

    def test_is_no_name_among_resources(self):
        with self.assertRaisesRegex(ValueError, "resources has 'memory'; say it as memory"):
            ray.remote(resources={"memory": 1})(os.getpid)


class Variables(unittest.TestCase):
    def test_stand_for_others(self):
        home = os.environ.get("HOME", "")
        self.assertEqual(get(ray.remote(os.getenv).remote("OF_INIT")), f"a:{home}::b")
        told = {"env_vars": {"FIRST": "/x:${HOME}:$HOME", "SECOND": "${FIRST}:${NOWHERE}", "OF_INIT": "${OF_INIT}:c"}}
        of_call = ray.remote(lambda: [os.environ[name] for name in told["env_vars"]]).options(runtime_env=told)
        first = f"/x:{home}:$HOME"
        self.assertEqual(get([of_call.remote(), of_call.remote()]), [[first, f"{first}:", f"a:{home}::b:c"]] * 2)

        @ray.remote(runtime_env=told)
        class Reader:
            def read(self):
                return os.environ["SECOND"]

        self.assertEqual(get(Reader.remote().read.remote()), f"{first}:")


class LongNames(unittest.TestCase):
    def test_of_resources_work_or_are_refused(self):
        self.assertIn(LONG, ray.cluster_resources())
        named = ray.remote(resources={LONG: 1})
        self.assertEqual(get(named(lambda: ray.get_runtime_context().get_assigned_resources()[LONG]).remote()), 1)
        self.assertTrue(placement_group([{LONG: 1}]).wait(10))
        with self.assertRaisesRegex(ValueError, r"'r{100}\.\.\. \(70000 bytes\)' is too long for the name of a resource"):
            ray.remote(resources={"r" * 70_000: 1})(os.getpid).remote()
        with self.assertWarnsRegex(UserWarning, r"r\.\.\. \(60001 bytes\): needs 1, there is 0"):
            ray.remote(resources={LONG + "r": 1})(os.getpid).remote()


class PendingCalls(unittest.TestCase):
    def test_no_more_than_allowed(self):
        gate = Gate.options(max_pending_calls=2).remote()
        get([gate.process.remote() for _ in range(2)])
        for _ in range(2):
            gate.pass_through.remote()
        with self.assertRaisesRegex(ray.exceptions.PendingCallsLimitExceeded, "2 calls of the actor are not done"):
            gate.process.remote()


class ManyArguments(unittest.TestCase):
    def test_may_be_references_up_to_a_number(self):
        count, one = ray.remote(lambda *values: len(values)), ray.put(1)
        self.assertEqual(get(count.remote(bytes(100_000), *[one] * 8189)), 8190)
        self.assertEqual(get(count.remote(*[1] * 10_000)), 10_000)
        self.assertEqual(get(count.remote([one] * 10_000)), 1)
        with self.assertRaisesRegex(ValueError, "9000 arguments of a call are references, and 8189 may be: put them into a list"):
            count.remote(*[one] * 9000)


class Groups(unittest.TestCase):
    def test_a_call_that_no_bundle_can_hold_is_refused(self):
        group = placement_group([{"CPU": 1}])
        with self.assertRaisesRegex(ValueError, r"\{'CPU': 2\} cannot fit into any bundles .* \[\{'CPU': 1.0\}\]"):
            ray.remote(num_cpus=2, scheduling_strategy=PlacementGroupSchedulingStrategy(group))(os.getpid).remote()

    def test_what_no_group_can_be(self):
        for bundles, why in (
            ([{"CPU": 0}], "only 0 values"),
            ([{8: 1}], "resource dictionaries"),
            ([{"bundle": 1}], "'bundle'"),
            ("CPU", "must be a list"),
        ):
            with self.assertRaisesRegex(ValueError, why):
                validate_placement_group(bundles)
        with self.assertRaisesRegex(ValueError, "Invalid placement group strategy 'LINE'"):
            validate_placement_group([{"CPU": 1}], strategy="LINE")


class Texts(unittest.TestCase):
    def test_a_killed_actor(self):
        gate = Gate.remote()
        ray.kill(gate)
        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "it was killed by `ray.kill`") as caught:
            get(gate.process.remote())
        self.assertEqual(caught.exception.actor_id, gate._actor_id.hex())

    def test_an_actor_whose_process_died(self):
        gate = Gate.remote()
        os.kill(get(gate.process.remote()), signal.SIGKILL)
        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "its worker process has died"):
            get(gate.process.remote())

    def test_what_raised_and_where(self):
        gate = Gate.remote()
        with self.assertRaises(KeyError) as caught:
            get(gate.fail.remote())
        first, second, *_ = str(caught.exception).split("\n")
        self.assertRegex(first, rf"^ray::Gate.fail\(\) \(pid=\d+, ip=127.0.0.1, actor_id={gate._actor_id.hex()}, repr=<.*>\)$")
        self.assertIn("in fail", second)

    def test_lines_of_the_runtime_are_left_out(self):
        outer = ray.remote(lambda: ray.get(ray.remote(lambda: 1 / 0).remote()))
        with self.assertRaises(ZeroDivisionError) as caught:
            get(outer.remote())
        self.assertNotIn("session.py", str(caught.exception))

    def test_exit_actor_on_a_thread_of_its_own(self):
        self.assertIn("a thread that does no method", get(Gate.remote().end_on_a_thread.remote()))

    def test_an_exception_of_a_class_that_has_none_of_its_kind(self):
        class Last(Exception):
            def __init_subclass__(cls):
                raise TypeError("the last")

        def end():
            raise Last

        with self.assertLogs("menger.runtime.exceptions", "WARNING") as logged:
            with self.assertRaises(ray.exceptions.RayTaskError):
                get(ray.remote(end).remote())
        self.assertIn("RayTaskError only", logged.output[0])


class Processes(unittest.TestCase):
    def test_without_gpus_none_are_seen(self):
        self.assertEqual(get(ray.remote(lambda: os.environ["CUDA_VISIBLE_DEVICES"]).remote()), "")

    def test_a_hook_is_of_init(self):
        with self.assertRaisesRegex(ValueError, "worker_process_setup_hook', which is of init's runtime_env"):
            ray.remote(runtime_env={"worker_process_setup_hook": time.time})(os.getpid)


if __name__ == "__main__":
    unittest.main()
