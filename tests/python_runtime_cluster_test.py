"""menger.runtime in a cluster: programs that join nodes of other processes, all on this machine."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time
import unittest

import numpy as np
from python_runtime import PATIENCE_S, check_library, get, ray
from python_runtime_nodes import PROGRAM, Nodes, await_nodes

from menger.runtime.util import scheduling_strategies, state

NODES = []


def setUpModule():
    check_library()
    NODES.append(Nodes())


def tearDownModule():
    ray.shutdown()
    for nodes in NODES:
        nodes.end()
        nodes.folder.cleanup()


@contextlib.contextmanager
def variables(**changed):
    before = dict(os.environ)
    os.environ.update(changed)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Addresses(unittest.TestCase):
    def tearDown(self):
        ray.shutdown()

    def test_auto_is_what_a_variable_says(self):
        for name in ("MENGER_ADDRESS", "RAY_ADDRESS"):
            with variables(**{name: NODES[0].address}):
                self.assertEqual(ray.init("auto").address_info["address"], NODES[0].address)
                ray.shutdown()
        with self.assertRaisesRegex(ConnectionError, "MENGER_ADDRESS"):
            ray.init("auto")

    def test_local_is_this_machine_whatever_a_variable_says(self):
        with variables(MENGER_ADDRESS=NODES[0].address):
            self.assertNotIn("address", ray.init("local", num_cpus=1).address_info)
            ray.shutdown()
            self.assertEqual(ray.init().address_info["address"], NODES[0].address)

    def test_what_nodes_have_is_not_a_programs_to_say(self):
        for told in ({"num_cpus": 2}, {"num_gpus": 0}, {"resources": {"second": 1}}, {"labels": {"a": "b"}}, {"_memory": 1}):
            with self.assertRaisesRegex(ValueError, f"{next(iter(told))} .*whose nodes say"):
                ray.init(NODES[0].address, **told)

    def test_addresses_that_are_none_are_named(self):
        for address in ("ray://127.0.0.1:10001", "nowhere", "127.0.0.1:99999"):
            with self.assertRaisesRegex(ValueError, address):
                ray.init(address)
        with self.assertRaisesRegex(TypeError, "HOST:PORT"):
            ray.init(7070)

    def test_waits_are_the_programs_to_choose(self):
        with self.assertRaisesRegex(ConnectionError, "127.0.0.1:1"):
            ray.init("127.0.0.1:1", join_seconds=0.2)
        ray.init(NODES[0].address, node_wait_seconds=0.2)

        @ray.remote(resources={"nowhere": 1})
        def never():
            pass

        with self.assertRaisesRegex(ray.exceptions.TaskUnschedulableError, "no node has what it needs"):
            get(never.remote())
        ray.shutdown()
        for name in ("join_seconds", "node_wait_seconds"):
            for wrong, error in ((0, ValueError), (-1, ValueError), (float("inf"), ValueError), ("1", TypeError)):
                with self.assertRaisesRegex(error, f"{name} is '?{wrong}'?; it must"):
                    ray.init(NODES[0].address, **{name: wrong})

    def test_a_cluster_that_would_not_have_the_program_cannot_be_connected_to(self):
        with variables(MENGER_CLUSTER_TOKEN="another"), self.assertRaisesRegex(ConnectionError, "token"):
            ray.init(NODES[0].address)


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ray.init(NODES[0].address, namespace="cluster")
        await_nodes(2)

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()

    def test_a_call_may_give_many_values_that_are_large_together(self):
        @ray.remote(num_returns=300)
        def values():
            return [bytes(60_000)] * 300

        for _ in range(3):
            self.assertEqual({len(each) for each in get(values.remote())}, {60_000})

    def test_nodes_are_those_that_do_calls(self):
        first, second = sorted(ray.nodes(), key=lambda node: node["Resources"]["CPU"])
        self.assertEqual(first["Resources"], {"CPU": 1, "first": 1, "node:127.0.0.1": 1, "node:__internal_head__": 1})
        self.assertEqual(second["Resources"], {"CPU": 2, "GPU": 2, "second": 2, "node:127.0.0.1": 1})
        self.assertEqual([second["NodeName"], second["NodeManagerAddress"], second["Alive"]], ["second", "127.0.0.1", True])
        self.assertEqual(f"{first['NodeManagerAddress']}:{first['NodeManagerPort']}", NODES[0].address)
        expected = {"CPU": 3, "GPU": 2, "first": 1, "second": 2, "node:127.0.0.1": 2, "node:__internal_head__": 1}
        self.assertEqual(ray.cluster_resources(), expected)
        self.assertNotIn(ray.get_runtime_context().get_node_id(), [node["NodeID"] for node in ray.nodes()])
        self.assertEqual([node.is_head_node for node in state.list_nodes([("node_id", "=", first["NodeID"])])], [True])

    def test_workers_know_their_node_and_the_others(self):
        @ray.remote
        def told():
            context = ray.get_runtime_context()
            return context.get_node_id(), sorted(node["NodeID"] for node in ray.nodes()), context.gcs_address, ray.cluster_resources()

        nodes = {node["NodeID"]: node["Resources"] for node in ray.nodes()}
        own, others, head, resources = get(told.options(resources={"first": 1}).remote())
        self.assertIn("first", nodes[own])
        self.assertEqual((others, head, resources), (sorted(nodes), NODES[0].address, ray.cluster_resources()))

    def test_a_call_goes_to_the_node_that_it_names(self):
        @ray.remote(num_cpus=0)
        def where():
            return ray.get_runtime_context().get_node_id()

        for node in ray.nodes():
            there = scheduling_strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            self.assertEqual(get([where.options(scheduling_strategy=there).remote() for _ in range(3)]), [node["NodeID"]] * 3)
        head = get(where.options(resources={"node:__internal_head__": 0.01}).remote())
        self.assertEqual(head, next(node["NodeID"] for node in ray.nodes() if "first" in node["Resources"]))
        none = scheduling_strategies.NodeAffinitySchedulingStrategy("second", soft=False)
        with self.assertRaisesRegex(ValueError, "node_id is 'second'; it must be the NodeID"):
            where.options(scheduling_strategy=none).remote()
        gone = scheduling_strategies.NodeAffinitySchedulingStrategy("00" * 16, soft=False)
        with self.assertRaisesRegex(ray.exceptions.TaskUnschedulableError, "node:0000.* is not there"):
            get(where.options(scheduling_strategy=gone).remote())
        gone.soft = True
        self.assertIn(get(where.options(scheduling_strategy=gone).remote()), [node["NodeID"] for node in ray.nodes()])

    def test_what_needs_nothing_is_not_done_by_the_programs_process(self):
        @ray.remote
        class Actor:
            def where(self):
                return ray.get_runtime_context().get_node_id()

        actor = Actor.remote()
        node = get(actor.where.remote())
        self.assertIn(node, [each["NodeID"] for each in ray.nodes()])
        (entry,) = state.list_actors([("actor_id", "=", actor._actor_id.hex())])
        self.assertEqual(entry.node_id, node)

    def test_values_go_from_node_to_node(self):
        @ray.remote
        def doubled(array):
            return 2 * array

        array = np.arange(100_000.0)
        there = doubled.options(resources={"second": 1}).remote(ray.put(array))
        back = doubled.options(resources={"first": 1}).remote(there)
        np.testing.assert_array_equal(get(back), 4 * array)
        np.testing.assert_array_equal(get(there), 2 * array)

    def test_calls_call_and_stream(self):
        @ray.remote
        def count(to):
            yield from range(to)

        @ray.remote(num_cpus=0)
        def read(to):
            return [ray.get(each) for each in count.options(resources={"second": 1}).remote(to)]

        self.assertEqual(get(read.remote(5)), list(range(5)))
        self.assertEqual([get(each) for each in count.remote(3)], list(range(3)))

    def test_actors_have_names_that_all_nodes_know(self):
        @ray.remote
        class Sum:
            def __init__(self):
                self.sum = 0

            def add(self, more):
                self.sum += more
                return self.sum

        @ray.remote(resources={"second": 1})
        def add(name):
            return ray.get(ray.get_actor(name).add.remote(2))

        actor = Sum.options(name="sum", resources={"first": 1}).remote()
        self.assertEqual(get(actor.add.remote(1)), 1)
        self.assertEqual(get(add.remote("sum")), 3)
        ray.kill(actor)
        with self.assertRaises(ray.exceptions.RayActorError):
            get(actor.add.remote(1))

    def test_errors_have_the_workers_traceback_and_crashes_are_retried(self):
        @ray.remote
        def fails():
            raise LookupError("not here")

        @ray.remote(max_retries=1)
        def crashes(marker):
            if not os.path.exists(marker):
                pathlib.Path(marker).touch()
                os._exit(1)
            return "done"

        with self.assertRaisesRegex(LookupError, r"(?s)python_runtime_cluster_test\.py.*in fails"):
            get(fails.remote())
        self.assertEqual(get(crashes.remote(os.path.join(NODES[0].folder.name, "marker"))), "done")

    def test_bundles_are_on_nodes(self):
        @ray.remote
        def where():
            return ray.get_runtime_context().get_node_id()

        group = ray.util.placement_group([{"CPU": 1}, {"CPU": 1}], strategy="STRICT_SPREAD")
        self.assertTrue(group.wait(PATIENCE_S))
        self.assertEqual(ray.available_resources()["CPU"], 1)
        places = [where.options(placement_group=group, placement_group_bundle_index=i).remote() for i in range(2)]
        self.assertEqual(sorted(get(places)), sorted(node["NodeID"] for node in ray.nodes()))
        ray.util.remove_placement_group(group)

    def test_a_group_waits_for_a_node_that_is_about_to_join(self):
        group = ray.util.placement_group([{"CPU": 1, "fourth": 1}])
        ready = group.ready()
        self.assertEqual(ray.wait([ready], timeout=0.3)[0], [])
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--resources", "fourth=1")
        get(ready)
        ray.util.remove_placement_group(group)
        NODES[0].end(slice(-1, None))

    def test_what_a_program_uses_is_not_available(self):
        @ray.remote(num_cpus=2)
        class Actor:
            pass

        actor = Actor.remote()
        get(actor.__ray_ready__.remote())
        self.assertEqual(ray.available_resources()["CPU"], 1)

    def test_calls_see_the_gpus_of_their_node(self):
        @ray.remote(num_gpus=1)
        class Holder:
            def seen(self):
                return ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]

        @ray.remote
        def without():
            return ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]

        holders = [Holder.remote() for _ in range(2)]
        self.assertEqual(sorted(get([holder.seen.remote() for holder in holders])), [([0], "0"), ([1], "1")])
        self.assertEqual(get(without.remote()), ([], ""))

    def test_cancelled_calls_end(self):
        @ray.remote
        def sleep():
            time.sleep(PATIENCE_S)

        running = sleep.remote()
        self.assertEqual(ray.wait([running], timeout=0.3), ([], [running]))
        ray.cancel(running)
        with self.assertRaises(ray.exceptions.TaskCancelledError):
            get(running)

    def test_memory_is_not_counted(self):
        @ray.remote(memory=2**40)
        def one():
            return 1

        self.assertEqual(get(one.remote()), 1)


class Leaving(unittest.TestCase):
    def test_a_node_that_joins_later_serves_and_one_that_leaves_at_once_costs_a_run(self):
        ray.init(NODES[0].address)

        @ray.remote(resources={"third": 1}, max_retries=3)
        def where():
            time.sleep(0.5)
            return ray.get_runtime_context().get_node_id()

        waiting = where.remote()
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--resources", "third=1", "--drain-seconds", "0")
        third = get(waiting)
        await_nodes(3)
        self.assertIn(third, [node["NodeID"] for node in ray.nodes()])
        running = where.remote()
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--resources", "third=1")
        await_nodes(4)
        NODES[0].end(slice(2, 3))
        self.assertNotEqual(get(running), third)
        ray.shutdown()

    def test_a_node_that_is_gone_is_soon_no_longer_one_of_the_nodes(self):
        ray.init(NODES[0].address)
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--name", "fourth")
        await_nodes(3)
        NODES[0].processes[-1].kill()
        # What the control store finds out only when the lease is over is known to who had a stream to it.
        begin = time.monotonic()
        await_nodes(2)
        self.assertEqual(len(ray.nodes()), 2)
        self.assertNotIn("fourth", [node["NodeName"] for node in ray.nodes()])
        listed = subprocess.run([PROGRAM, "node", "list", NODES[0].address], capture_output=True, text=True, check=True).stdout
        if time.monotonic() - begin < 5:  # Of ten.
            self.assertIn("fourth", listed)
        NODES[0].end(slice(-1, None))
        ray.shutdown()

    def test_a_node_that_drains_loses_nothing_and_begins_nothing(self):
        ray.init(NODES[0].address)
        go = os.path.join(NODES[0].folder.name, "go")

        # None may run again: what is there in the end was made once.
        @ray.remote(resources={"fourth": 1}, num_cpus=0, max_retries=0)
        def make(number, awaited):
            while awaited and not os.path.exists(awaited):
                time.sleep(0.02)
            return np.full(100_000, number), ray.get_runtime_context().get_node_id()

        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--resources", "fourth=2")
        leaving = NODES[0].processes[-1]
        alone = make.remote(-1, None)  # Nobody reads it before the end: its only copy is there.
        ray.wait([alone], timeout=PATIENCE_S, fetch_local=False)
        calls = [make.remote(number, go) for number in range(30)]
        self.await_use("fourth", 2)
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--resources", "fourth=2")
        leaving.terminate()
        self.await_draining()
        with open(go, "w"):
            pass
        self.assertEqual(leaving.wait(PATIENCE_S), 0)
        values = get(calls)
        for number, (array, _) in enumerate(values):
            self.assertEqual((int(array.min()), int(array.max())), (number, number))
        array, gone = get(alone)
        self.assertEqual(int(array.sum()), -100_000)
        self.assertEqual([node for _, node in values].count(gone), 2)  # Those that were under way.
        NODES[0].end(slice(-2, None))
        ray.shutdown()

    def test_draining_is_said_and_over_at_once_where_a_node_is_told_again(self):
        ray.init(NODES[0].address)

        @ray.remote(resources={"fifth": 1}, num_cpus=0, max_retries=0)
        def stay():
            time.sleep(10 * PATIENCE_S)

        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--resources", "fifth=1", "--drain-seconds", "600")
        leaving = NODES[0].processes[-1]
        running = stay.remote()
        self.await_use("fifth", 1)
        leaving.terminate()
        self.await_draining()
        self.assertIsNone(leaving.poll())
        leaving.terminate()
        self.assertEqual(leaving.wait(PATIENCE_S), 128 + signal.SIGTERM)
        NODES[0].end(slice(-1, None))
        with self.assertRaises(ray.exceptions.RayError):
            get(running)
        ray.shutdown()

    def await_use(self, resource, count):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if ray.cluster_resources().get(resource, 0) - ray.available_resources().get(resource, 0) == count:
                return
            time.sleep(0.02)
        self.fail(f"nobody uses {count} of '{resource}'")

    def await_draining(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            listed = subprocess.run([PROGRAM, "node", "list", NODES[0].address], capture_output=True, text=True, check=True)
            if " draining " in listed.stdout:
                return
            time.sleep(0.02)
        self.fail(f"no node drains: {listed.stdout}")


if __name__ == "__main__":
    unittest.main()
