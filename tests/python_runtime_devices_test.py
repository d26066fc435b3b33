"""What calls and actors of menger.runtime have of the machine: accelerators of all kinds, its labels, and what its processes may cost."""

import os
import pathlib
import unittest

from python_runtime import check_library, get, ray

from menger.runtime.util.scheduling_strategies import PlacementGroupSchedulingStrategy

LABELS = {"region": "north", "disk": ""}


def setUpModule():
    check_library()
    ray.init(num_cpus=4, num_gpus=2, resources={"neuron_cores": 3, "wheel": 2}, labels=LABELS)


tearDownModule = ray.shutdown


@ray.remote(num_cpus=0)
def see():
    return ray.get_runtime_context().get_accelerator_ids(), os.environ["NEURON_RT_VISIBLE_CORES"], os.environ["CUDA_VISIBLE_DEVICES"]


@ray.remote(resources={"neuron_cores": 2}, num_gpus=1)
class Both:
    def see(self):
        return ray.get(see.remote()), ray.get_runtime_context().get_accelerator_ids(), os.environ["NEURON_RT_VISIBLE_CORES"]


class Accelerators(unittest.TestCase):
    def test_of_each_kind_a_call_has_its_own(self):
        ids, cores, gpus = get(see.remote())
        self.assertEqual((cores, gpus, set(map(tuple, ids.values()))), ("", "", {()}))
        self.assertLessEqual({"GPU", "TPU", "neuron_cores"}, set(ids))
        ids, cores, gpus = get(see.options(resources={"neuron_cores": 2}).remote())
        self.assertEqual((ids["neuron_cores"], ids["GPU"], gpus), (cores.split(","), [], ""))
        self.assertEqual(len(set(ids["neuron_cores"]) & set("012")), 2)

    def test_so_has_an_actor(self):
        called, ids, cores = get(Both.remote().see.remote())
        self.assertEqual((ids["neuron_cores"], len(ids["neuron_cores"]), len(ids["GPU"])), (cores.split(","), 2, 1))
        self.assertEqual(called[0]["GPU"], [])

    def test_are_whole_or_a_part_of_one(self):
        self.assertEqual(len(get(see.options(resources={"neuron_cores": 0.5}).remote())[0]["neuron_cores"]), 1)
        with self.assertRaisesRegex(ValueError, r"resources\['neuron_cores'\] is 1.5; it must be a whole number"):
            see.options(resources={"neuron_cores": 1.5}).remote()
        with self.assertRaisesRegex(ValueError, "num_gpus is 1.5"):
            see.options(num_gpus=1.5).remote()
        self.assertEqual(get(see.options(resources={"wheel": 1.5}).remote())[1], "")

    def test_a_group_has_the_same_again(self):
        groups = [ray.util.placement_group([{"GPU": 1}]) for _ in range(2)]
        within = [see.options(num_gpus=1, scheduling_strategy=PlacementGroupSchedulingStrategy(group)) for group in groups]
        seen = [[get(each.remote())[2] for each in within] for _ in range(3)]
        self.assertEqual(seen, seen[:1] * 3)
        self.assertEqual(set(seen[0]), {"0", "1"})

    def test_a_process_does_one_task_with_gpus(self):
        @ray.remote(num_cpus=0, num_gpus=0.5)
        def process():
            return os.getpid()

        seen = [get(process.remote()) for _ in range(3)]
        self.assertEqual(len(set(seen)), 3)
        several = process.options(max_calls=0)
        self.assertEqual(len({get(several.remote()) for _ in range(3)} - set(seen)), 1)


class Machine(unittest.TestCase):
    def test_has_labels(self):
        @ray.remote
        def labels():
            return ray.get_runtime_context().get_node_labels()

        expected = {**LABELS, "ray.io/node-id": ray.get_runtime_context().get_node_id()}
        self.assertEqual(get(labels.remote()), expected)
        self.assertEqual(ray.nodes()[0]["Labels"], expected)
        self.assertEqual(ray.get_runtime_context().get_node_labels(), expected)

    def test_can_be_named_as_a_resource(self):
        named = [name for name in ray.cluster_resources() if name.startswith("node:")]
        self.assertEqual(sorted(named), ["node:127.0.0.1", "node:__internal_head__"])
        self.assertEqual(get(see.options(resources=dict.fromkeys(named, 0.01)).remote())[1], "")

    def test_ends_workers_first_where_memory_runs_out(self):
        @ray.remote
        def score():
            return int(pathlib.Path("/proc/self/oom_score_adj").read_text())

        self.assertEqual(get(score.remote()), 1000)

    def test_functions_that_are_too_large_are_refused(self):
        large = bytes(96 * 2**20)

        @ray.remote
        def use():
            return len(large)

        @ray.remote
        class User:
            def use(self):
                return len(large)

        with self.assertRaisesRegex(ValueError, "The remote function .*use is too large: it has 1006.* bytes"):
            use.remote()
        with self.assertRaisesRegex(ValueError, "The actor User is too large"):
            User.remote()


if __name__ == "__main__":
    unittest.main()
