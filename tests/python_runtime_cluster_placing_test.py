"""On which nodes of a cluster calls and actors are: each node in its turn, or the one that they name."""

import os
import pathlib
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray
from python_runtime_nodes import Nodes, await_nodes

from menger.runtime.util import placement_group, placement_group_table, remove_placement_group
from menger.runtime.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

NODES = []


def setUpModule():
    check_library()
    NODES.append(Nodes())
    NODES[0].begin("--join", NODES[0].address, "--cpus", "2")
    NODES[0].begin("--join", NODES[0].address, "--cpus", "2")
    ray.init(NODES[0].address)
    await_nodes(4)


def tearDownModule():
    ray.shutdown()
    for nodes in NODES:
        nodes.end()
        nodes.folder.cleanup()


def where():
    return ray.get_runtime_context().get_node_id()


def held(go):
    """The node, once `go` is there: the CPU is held until then."""
    end = time.monotonic() + PATIENCE_S
    while not os.path.exists(go) and time.monotonic() < end:
        time.sleep(0.02)
    return where()


class Actor:
    where = staticmethod(where)


def counts(nodes):
    """How many are on each node that has any, in rising order."""
    return sorted(nodes.count(node) for node in set(nodes))


class Spread(unittest.TestCase):
    # The head has one CPU, three nodes have two.
    def test_calls_that_hold_their_cpu_are_on_all_nodes(self):
        go = os.path.join(NODES[0].folder.name, "spread")
        calls = [ray.remote(held).options(scheduling_strategy="SPREAD").remote(go) for _ in range(4)]
        self.assertEqual(ray.wait(calls, timeout=1)[0], [])
        pathlib.Path(go).touch()
        self.assertEqual(counts(get(calls)), [1, 1, 1, 1])

    def test_more_calls_than_there_is_room_for_are_all_done(self):
        calls = [ray.remote(where).options(scheduling_strategy="SPREAD").remote() for _ in range(200)]
        done = counts(get(calls))
        self.assertEqual((len(done), sum(done)), (4, 200))

    def test_one_call_after_the_other_is_done_by_one_node_after_the_other(self):
        spread = ray.remote(scheduling_strategy="SPREAD", num_cpus=0.5)(where)
        self.assertEqual(counts([get(spread.remote()) for _ in range(8)]), [2, 2, 2, 2])

    def test_actors_are_on_all_nodes(self):
        actors = [ray.remote(Actor).options(scheduling_strategy="SPREAD").remote() for _ in range(8)]
        self.assertEqual(counts(get([actor.where.remote() for actor in actors])), [2, 2, 2, 2])

    def test_what_is_assigned_is_what_was_asked_for(self):
        assigned = ray.remote(lambda: ray.get_runtime_context().get_assigned_resources())
        self.assertEqual(get(assigned.options(scheduling_strategy="SPREAD").remote()), {"CPU": 1})


class Affinity(unittest.TestCase):
    def begin_node(self):
        """A node with a resource of its own, and its id."""
        before = {node["NodeID"] for node in ray.nodes()}
        NODES[0].begin("--join", NODES[0].address, "--cpus", "2")
        await_nodes(len(before) + 1)
        (node,) = {node["NodeID"] for node in ray.nodes()} - before
        return node

    def end_node(self):
        NODES[0].processes[-1].kill()
        NODES[0].end(slice(-1, None))

    def test_what_prefers_a_node_is_there_until_it_is_gone(self):
        node = self.begin_node()
        soft = {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)}
        function, go = ray.remote(held).options(**soft), os.path.join(NODES[0].folder.name, "soft")
        actor = ray.remote(Actor).options(**soft, max_restarts=1, max_task_retries=-1).remote()
        self.assertEqual(get(actor.where.remote()), node)
        # Two have its CPUs, and the others wait for it.
        calls = [function.remote(go) for _ in range(4)]
        self.assertEqual(ray.wait(calls, timeout=1)[0], [])
        self.end_node()
        pathlib.Path(go).touch()
        begin = time.monotonic()
        self.assertNotIn(node, get(calls))
        self.assertNotEqual(get(actor.where.remote()), node)
        self.assertNotEqual(get(function.remote(go)), node)
        self.assertLess(time.monotonic() - begin, 30)  # Of the 60 s for which calls wait for nodes.

    def test_what_prefers_a_node_that_has_too_little_is_elsewhere(self):
        first = next(node["NodeID"] for node in ray.nodes() if node["Resources"]["CPU"] == 1)
        soft = NodeAffinitySchedulingStrategy(first, soft=True)
        self.assertNotEqual(get(ray.remote(where).options(num_cpus=2, scheduling_strategy=soft).remote()), first)

    def test_what_may_be_on_one_node_alone_fails_with_it(self):
        node = self.begin_node()
        hard = {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}
        running = ray.remote(held).options(**hard).remote("/nowhere")
        actor = ray.remote(Actor).options(**hard, max_restarts=1).remote()
        self.assertEqual(get(actor.where.remote()), node)
        large = ray.remote(where).options(num_cpus=3, **hard).remote()
        with self.assertRaisesRegex(ray.exceptions.TaskUnschedulableError, "CPU|cpu: needs 3, there is 2"):
            get(large)
        self.assertEqual(ray.wait([running], timeout=0.5)[0], [])
        self.end_node()
        with self.assertRaisesRegex(ray.exceptions.TaskUnschedulableError, "is gone"):
            get(running)
        with self.assertRaises((ray.exceptions.ActorUnschedulableError, ray.exceptions.ActorUnavailableError)):
            get(actor.where.remote())
        with self.assertRaises(ray.exceptions.ActorUnschedulableError):
            get(ray.remote(Actor).options(**hard).remote().where.remote())


def await_state(group, state):
    end = time.monotonic() + PATIENCE_S
    while (now := placement_group_table(group)["state"]) != state:
        assert time.monotonic() < end, now
        time.sleep(0.05)


class Groups(unittest.TestCase):
    def test_a_group_outlives_a_node_that_has_some_of_it(self):
        cluster = NODES[0]
        for name in ("one", "other"):
            cluster.begin("--join", cluster.address, "--cpus", "1", "--resources", "movable=1", "--name", name)
        await_nodes(6)
        names = {node["NodeID"]: node["NodeName"] for node in ray.nodes()}
        group = placement_group([{"CPU": 1, "movable": 1}, {"CPU": 1}], strategy="SPREAD")
        inside = {"scheduling_strategy": PlacementGroupSchedulingStrategy(group, 0), "num_cpus": 1}
        actor = ray.remote(Actor).options(**inside, max_restarts=1, max_task_retries=-1).remote()
        before = names[get(actor.where.remote())]
        entry = placement_group_table(group)
        self.assertEqual((entry["state"], names[entry["bundles_to_node_id"][0]]), ("CREATED", before))
        self.assertNotEqual(names[entry["bundles_to_node_id"][1]], before)
        dying = cluster.processes.pop(-2 if before == "one" else -1)
        dying.kill()
        after = names[get(actor.where.remote())]
        self.assertEqual({before, after}, {"one", "other"})
        ray.kill(actor)
        self.assertEqual(names[get(ray.remote(where).options(**inside).remote())], after)
        self.assertTrue(group.wait(PATIENCE_S))
        self.assertEqual(names[placement_group_table(group)["bundles_to_node_id"][0]], after)
        last = cluster.processes.pop()
        last.kill()
        await_state(group, "RESCHEDULING")
        self.assertEqual(placement_group_table(group)["bundles_to_node_id"][0], "")
        remove_placement_group(group)
        await_state(group, "REMOVED")
        for node in (dying, last):
            node.wait(PATIENCE_S)
            node.stdout.close()


if __name__ == "__main__":
    unittest.main()
