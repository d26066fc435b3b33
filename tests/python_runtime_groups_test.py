"""Python programs written for Ray's names, on menger.runtime: placement groups."""

import os
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray

from menger.runtime.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from menger.runtime.util.scheduling_strategies import PlacementGroupSchedulingStrategy


def setUpModule():
    check_library()
    ray.init(num_cpus=2, resources={"rocket": 1})


tearDownModule = ray.shutdown


@ray.remote
def twice(x):
    return 2 * x


@ray.remote
def sleep():
    time.sleep(PATIENCE_S)


@ray.remote
class Counter:
    def __init__(self):
        self.value = 0

    def add(self, by):
        self.value += by
        return self.value


@ray.remote(num_cpus=0)
def twice_in(group, x):
    return ray.get(twice.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group)).remote(x))


@ray.remote(num_cpus=0)
def where():
    return ray.get_runtime_context().get_placement_group_id()


@ray.remote(num_cpus=0)
def ask_outside():
    return ray.get(where.options(scheduling_strategy=PlacementGroupSchedulingStrategy(None)).remote())


@ray.remote(num_cpus=0)
def ask():
    return ray.get(where.remote())


def asked():
    """Where this runs, and what it calls: outside of groups, twice, and where it is told nothing."""
    outside = where.options(placement_group=None), where.options(scheduling_strategy="DEFAULT")
    return [ray.get_runtime_context().get_placement_group_id(), *ray.get([each.remote() for each in outside]), ray.get(ask.remote())]


@ray.remote
def ask_around():
    return asked()


@ray.remote
class Asks:
    def ask(self):
        return asked()


class Groups(unittest.TestCase):
    def test_tasks_and_actors_run_in_them(self):
        group = placement_group([{"CPU": 1}, {"CPU": 1, "rocket": 1}], strategy="STRICT_PACK", name="pair")
        self.assertTrue(group.wait(timeout_seconds=PATIENCE_S))
        self.assertEqual(get(group.ready()), group)
        self.assertEqual((group.bundle_count, group.bundle_specs[0]), (2, {"CPU": 1}))
        second = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=1)
        counter = Counter.options(num_cpus=1, resources={"rocket": 1}, scheduling_strategy=second).remote()
        self.assertEqual(get(counter.add.remote(3)), 3)
        self.assertEqual(get(twice_in.remote(group, 4)), 8)
        # Nothing is left for others, until it is gone.
        outside = twice.remote(5)
        self.assertEqual(ray.wait([outside], timeout=0.02)[0], [])
        waits = placement_group([{"CPU": 2}])
        self.assertFalse(waits.wait(timeout_seconds=0))
        remove_placement_group(waits)
        remove_placement_group(group)
        self.assertEqual(get(outside), 10)
        with self.assertRaisesRegex(ray.exceptions.RayActorError, "the placement group was removed"):
            get(counter.add.remote(1))

    def test_they_are_gone_with_their_last_reference(self):
        for i in range(20):
            group = placement_group([{"CPU": 2}])
            strategy = PlacementGroupSchedulingStrategy(group)
            self.assertEqual(get(twice.options(num_cpus=2, scheduling_strategy=strategy).remote(i)), 2 * i)
        del group, strategy
        self.assertEqual(get(twice.options(num_cpus=2).remote(1)), 2)

    def test_removal_ends_what_runs_in_them(self):
        group = ray.util.placement_group([{"CPU": 1}])
        strategy = PlacementGroupSchedulingStrategy(group)
        calls = [sleep.options(scheduling_strategy=strategy).remote() for _ in range(2)]
        self.assertTrue(group.wait(PATIENCE_S))
        ray.util.remove_placement_group(group)
        for call in calls:
            with self.assertRaisesRegex(ray.exceptions.TaskPlacementGroupRemoved, "task 'sleep' failed: the placement group was"):
                get(call)
        calls.append(twice.options(scheduling_strategy=strategy).remote(1))
        for call in calls:
            with self.assertRaisesRegex(ray.exceptions.TaskPlacementGroupRemoved, "the placement group was removed"):
                get(call)

    def test_what_cannot_be_is_said(self):
        for bundles in ([], {}, [1], None):
            with self.assertRaisesRegex(ValueError, "bundles are"):
                placement_group(bundles)
        with self.assertRaisesRegex(ValueError, "a bundle of a placement group has nothing in it"):
            placement_group([{}])
        with self.assertRaisesRegex(ValueError, "strategy 'NEAR'"):
            placement_group([{"CPU": 1}], strategy="NEAR")
        with self.assertRaisesRegex(ValueError, r"bundles\[0\]\['CPU'\] is nan; it must be a number"):
            placement_group([{"CPU": float("nan")}])
        for wrong in ({"placement_group": 5}, {"placement_group_bundle_index": 1}):
            with self.assertRaisesRegex(ValueError, "placement_group"):
                twice.options(**wrong)

    def test_one_that_can_never_be_had_waits(self):
        with self.assertWarnsRegex(UserWarning, "its 2 bundles are to be each on a node of its own"):
            placement_group([{"CPU": 1}, {"CPU": 1}], strategy="STRICT_SPREAD")
        with self.assertWarnsRegex(UserWarning, "placement group 'never' waits .*: CPU: needs 3, there is 2"):
            never = placement_group([{"CPU": 2}, {"CPU": 1}], name="never")
        strategy = PlacementGroupSchedulingStrategy(never)
        within = twice.options(scheduling_strategy=strategy).remote(1)
        added = Counter.options(scheduling_strategy=strategy).remote().add.remote(1)
        self.assertFalse(never.wait(0.2))
        with self.assertRaises(ray.exceptions.GetTimeoutError):
            ray.get(never.ready(), timeout=0.1)
        self.assertEqual(ray.wait([within, added], timeout=0.1)[0], [])
        entry = ray.util.placement_group_table(never)
        self.assertEqual((entry["state"], entry["stats"]["scheduling_state"]), ("PENDING", "INFEASIBLE"))
        self.assertEqual(str(entry["bundles"]), "{0: {'CPU': 2.0}, 1: {'CPU': 1.0}}")  # Numbers as Ray gives them.
        ray.util.remove_placement_group(never)
        for each in (within, added, never.ready()):
            with self.assertRaises(ray.exceptions.RayError):
                get(each)
        self.assertEqual(ray.util.placement_group_table(never)["state"], "REMOVED")
        group = placement_group([{"CPU": 1}])
        with self.assertRaisesRegex(ValueError, "bundle index 1 is invalid; it must lie between -1 and 0"):
            PlacementGroupSchedulingStrategy(group, 1)
        with self.assertRaisesRegex(ValueError, "placement_group is 'one'"):
            PlacementGroupSchedulingStrategy("one")
        with self.assertRaisesRegex(ValueError, "scheduling_strategy is 'FAR'"):
            twice.options(scheduling_strategy="FAR")
        with self.assertRaisesRegex(ValueError, "takes a PlacementGroup"):
            remove_placement_group(None)
        strategy = PlacementGroupSchedulingStrategy(group)
        with self.assertRaisesRegex(ValueError, "Cannot schedule twice with the placement group"):
            twice.options(num_cpus=2, scheduling_strategy=strategy).remote(1)
        self.assertIs(type(group), PlacementGroup)
        self.assertIn(group.id.hex(), repr(group))

    def test_may_be_named_by_options_of_their_own(self):
        group = placement_group([{"CPU": 1}, {"CPU": 1}])
        self.assertEqual(get(where.options(placement_group=group, placement_group_bundle_index=1).remote()), group.id.hex())
        asks = Asks.options(placement_group=group).remote()
        self.assertEqual(get(asks.ask.remote()), [group.id.hex(), None, None, None])
        self.assertIsNone(get(where.options(placement_group="default", num_cpus=0).remote()))

    def test_capture_what_is_called_in_them_if_they_are_told_to(self):
        group = placement_group([{"CPU": 1}])
        captured = {"placement_group": group, "placement_group_capture_child_tasks": True}
        # What is told where to run runs there; all else in the group, also what a task calls in turn.
        self.assertEqual(get(ask_around.options(**captured).remote()), [group.id.hex(), None, None, group.id.hex()])
        strategy = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)
        asks = Asks.options(scheduling_strategy=strategy).remote()
        self.assertEqual(get(asks.ask.remote()), [group.id.hex(), None, None, group.id.hex()])
        self.assertIsNone(get(ask_outside.options(**captured).remote()))
        # The worker calls the same functions for others afterwards.
        self.assertEqual(get(ask_around.options(placement_group=group).remote()), [group.id.hex(), None, None, None])

    def test_workers_of_a_group_are_processes_like_others(self):
        group = placement_group([{"CPU": 1}])
        strategy = PlacementGroupSchedulingStrategy(group)
        process = ray.remote(scheduling_strategy=strategy)(os.getpid)
        self.assertNotEqual(get(process.remote()), os.getpid())


if __name__ == "__main__":
    unittest.main()
