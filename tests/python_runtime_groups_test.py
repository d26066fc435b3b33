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
            with self.assertRaisesRegex(ray.exceptions.TaskCancelledError, "task 'sleep' failed: the placement group was"):
                get(call)
        calls.append(twice.options(scheduling_strategy=strategy).remote(1))
        for call in calls:
            with self.assertRaisesRegex(ray.exceptions.TaskCancelledError, "the placement group was removed"):
                get(call)

    def test_what_cannot_be_is_said(self):
        for bundles in ([], {}, [1], None):
            with self.assertRaisesRegex(ValueError, "bundles are"):
                placement_group(bundles)
        with self.assertRaisesRegex(ValueError, "a bundle of a placement group has nothing in it"):
            placement_group([{}])
        with self.assertRaisesRegex(ValueError, "strategy is 'NEAR'"):
            placement_group([{"CPU": 1}], strategy="NEAR")
        with self.assertRaisesRegex(ray.exceptions.RayError, "cpu: needs 3, there is 2"):
            placement_group([{"CPU": 3}]).wait(PATIENCE_S)
        with self.assertRaisesRegex(ray.exceptions.RayError, "each on a node of its own"):
            get(placement_group([{"CPU": 1}, {"CPU": 1}], strategy="STRICT_SPREAD").ready())
        group = placement_group([{"CPU": 1}])
        with self.assertRaisesRegex(ValueError, "placement_group_bundle_index is 1; it must lie between -1 and 0"):
            PlacementGroupSchedulingStrategy(group, 1)
        with self.assertRaisesRegex(ValueError, "placement_group is None"):
            PlacementGroupSchedulingStrategy(None)
        with self.assertRaisesRegex(ValueError, "scheduling_strategy is 'FAR'"):
            twice.options(scheduling_strategy="FAR")
        with self.assertRaisesRegex(ValueError, "takes a PlacementGroup"):
            remove_placement_group(None)
        strategy = PlacementGroupSchedulingStrategy(group)
        with self.assertRaisesRegex(ray.exceptions.RayError, "cpu: needs 2, there is 1"):
            get(twice.options(num_cpus=2, scheduling_strategy=strategy).remote(1))
        self.assertIs(type(group), PlacementGroup)
        self.assertIn(group.id, repr(group))

    def test_workers_of_a_group_are_processes_like_others(self):
        group = placement_group([{"CPU": 1}])
        strategy = PlacementGroupSchedulingStrategy(group)
        process = ray.remote(scheduling_strategy=strategy)(os.getpid)
        self.assertNotEqual(get(process.remote()), os.getpid())


if __name__ == "__main__":
    unittest.main()
