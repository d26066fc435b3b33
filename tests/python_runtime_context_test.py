"""Python programs written for Ray's names, on menger.runtime: what they ask about themselves and the node, and how actors end."""

import asyncio
import atexit
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from python_runtime import PATIENCE_S, ROOT, check_library, get, ray

from menger.runtime.node import RESOURCES as NODES
from menger.runtime.util import state

NAMESPACE = "letters"


def setUpModule():
    check_library()
    ray.init(num_cpus=4, num_gpus=3, resources={"wheel": 2}, namespace=NAMESPACE)


tearDownModule = ray.shutdown


@ray.remote(max_restarts=1)
class Asked:
    def __init__(self):
        self.made_again = ray.get_runtime_context().was_current_actor_reconstructed

    def ask(self):
        context = ray.get_runtime_context()
        return {
            "job": context.get_job_id(),
            "node": context.get_node_id(),
            "worker": context.get_worker_id(),
            "task": context.get_task_id(),
            "actor": context.get_actor_id(),
            "name": context.get_actor_name(),
            "call": context.get_task_name(),
            "function": context.get_task_function_name(),
            "resources": context.get_assigned_resources(),
            "namespace": context.namespace,
            "made_again": self.made_again,
            "all": context.get(),
        }

    def itself(self):
        return ray.get_runtime_context().current_actor

    def process(self):
        return os.getpid()


def wait_until(is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("it did not become so")
        time.sleep(0.01)


@ray.remote(num_cpus=0)
def fruit_and_tree():
    return os.environ.get("FRUIT"), os.environ.get("TREE")


def ask_both():
    other = fruit_and_tree.options(runtime_env={"env_vars": {"FRUIT": "fig"}})
    return ray.get([fruit_and_tree.remote(), other.remote()])


@ray.remote
def ask_nested():
    return ask_both()


@ray.remote
class AsksNested:
    def ask(self):
        return ask_both()


class Context(unittest.TestCase):
    def test_of_the_driver(self):
        context = ray.get_runtime_context()
        self.assertIsNone(context.get_task_id())
        self.assertIsNone(context.get_actor_id())
        self.assertIsNone(context.get_actor_name())
        self.assertEqual(context.get_assigned_resources(), {})
        self.assertEqual(context.namespace, NAMESPACE)
        self.assertFalse(context.was_current_actor_reconstructed)
        self.assertEqual(set(context.get()), {"job_id", "node_id", "namespace"})

    def test_of_a_task(self):
        @ray.remote(num_cpus=2, resources={"wheel": 0.5}, name="the task")
        def ask():
            context = ray.get_runtime_context()
            return context.get_task_id(), context.get_task_name(), context.get_assigned_resources(), context.get_job_id()

        one, name, resources, job = get(ask.remote())
        self.assertEqual((name, resources), ("the task", {"CPU": 2.0, "wheel": 0.5}))
        self.assertEqual(job, ray.get_runtime_context().get_job_id())
        self.assertNotEqual(one, get(ask.remote())[0])

    def test_of_an_actor(self):
        actor = Asked.options(name="anna", num_cpus=1).remote()
        said, driver = get(actor.ask.remote()), ray.get_runtime_context()
        self.assertEqual((said["job"], said["node"]), (driver.get_job_id(), driver.get_node_id()))
        self.assertNotEqual(said["worker"], driver.get_worker_id())
        self.assertEqual(said["actor"], actor._actor_id.hex())
        self.assertEqual((said["name"], said["call"]), ("anna", "Asked.ask"))
        self.assertTrue(said["function"].endswith(".Asked.ask"))
        self.assertEqual(said["resources"], {"CPU": 1.0})
        self.assertEqual(said["namespace"], NAMESPACE)
        self.assertEqual(said["all"]["task_id"].hex(), said["task"])
        self.assertEqual(get(Asked.remote().ask.remote())["name"], "")

    def test_each_of_several_calls_at_once_has_its_own(self):
        @ray.remote
        class Several:
            async def ask(self):
                before = ray.get_runtime_context().get_task_id()
                await ray.put(0)
                return before, ray.get_runtime_context().get_task_id()

        found = get([each.ask.remote() for each in [Several.remote()] for _ in range(20)])
        self.assertTrue(all(before == after for before, after in found))
        self.assertEqual(len(set(found)), 20)

    def test_an_actor_that_was_made_again_knows(self):
        actor = Asked.remote()
        self.assertFalse(get(actor.ask.remote())["made_again"])
        os.kill(get(actor.process.remote()), signal.SIGKILL)
        wait_until(lambda: _or_none(actor.ask) is not None)
        self.assertTrue(get(actor.ask.remote())["made_again"])

    def test_a_handle_of_oneself(self):
        actor = Asked.remote()
        self.assertEqual(get(get(actor.itself.remote()).process.remote()), get(actor.process.remote()))

    def test_threads_of_libraries(self):
        @ray.remote
        def threads():
            return os.environ["OMP_NUM_THREADS"]

        if "OMP_NUM_THREADS" in os.environ:
            self.skipTest("OMP_NUM_THREADS is set")
        self.assertEqual(get(threads.options(num_cpus=3).remote()), "3")

    def test_environments_of_single_tasks_and_actors(self):
        @ray.remote
        def read(name):
            return os.environ.get(name)

        @ray.remote
        class Reader:
            def read(self):
                return os.environ.get("FRUIT"), os.getcwd()

        told = ray.runtime_env.RuntimeEnv(env_vars={"FRUIT": "apple"})
        self.assertEqual(get([read.options(runtime_env=told).remote("FRUIT"), read.remote("FRUIT")]), ["apple", None])
        with tempfile.TemporaryDirectory() as folder:
            actor = Reader.options(runtime_env={**told, "working_dir": folder}).remote()
            self.assertEqual(get(actor.read.remote()), ("apple", os.path.realpath(folder)))
        with self.assertRaisesRegex(ValueError, "'conda'.*env_vars"):
            read.options(runtime_env={"conda": "x"})
        for wrong in ({"env_vars": "x"}, {"env_vars": {"A": 1}}, {"working_dir": 5}, {"py_modules": "/tmp"}):
            with self.assertRaisesRegex(TypeError, "it must be"):
                read.options(runtime_env=wrong)
        for variable in ({"": "x"}, {"A=B": "x"}, {"A": "\0"}):
            with self.assertRaisesRegex(ValueError, "a name is not empty"):
                read.options(runtime_env={"env_vars": variable})

    def test_environments_go_to_what_is_called_in_them(self):
        nested = ask_nested.options(runtime_env={"env_vars": {"FRUIT": "pear", "TREE": "oak"}})
        self.assertEqual(get(nested.remote()), [("pear", "oak"), ("fig", "oak")])
        self.assertEqual(get(ask_nested.remote()), [(None, None), ("fig", None)])
        asks = AsksNested.options(runtime_env={"env_vars": {"TREE": "elm"}}).remote()
        self.assertEqual(get(asks.ask.remote()), [(None, "elm"), ("fig", "elm")])

    def test_modules_of_an_environment(self):
        @ray.remote
        def use():
            import pears_of_this_test

            return pears_of_this_test.COUNT

        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "pears_of_this_test"
            package.mkdir()
            (package / "__init__.py").write_text("COUNT = 3\n")
            self.assertEqual(get(use.options(runtime_env={"py_modules": [str(package)]}).remote()), 3)
            # The next task has another module of that name, or none, whichever worker it comes to.
            other = pathlib.Path(folder) / "other"
            other.mkdir()
            (other / "pears_of_this_test.py").write_text("COUNT = 7\n")
            self.assertEqual(get([use.options(runtime_env={"working_dir": str(other)}).remote() for _ in range(8)]), [7] * 8)
            for reference in [use.remote() for _ in range(8)]:
                with self.assertRaises(ModuleNotFoundError):
                    get(reference)
        with self.assertRaises(ray.exceptions.RuntimeEnvSetupError):
            get(use.options(runtime_env={"working_dir": "/no/such/folder"}).remote())


def _or_none(method):
    try:
        return get(method.remote())
    except ray.exceptions.RayActorError:
        return None


@ray.remote(num_gpus=1)
class OnGpu:
    def gpus(self):
        return ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]


class Gpus(unittest.TestCase):
    def test_each_has_its_own(self):
        @ray.remote(num_gpus=1, num_cpus=0)
        def see():
            return *ray.get_gpu_ids(), os.environ["CUDA_VISIBLE_DEVICES"]

        actors = [OnGpu.remote() for _ in range(2)]
        seen = get([each.gpus.remote() for each in actors])
        for (name,), visible in seen:
            self.assertEqual(str(name), visible)
        (left,) = {"0", "1", "2"} - {visible for _, visible in seen}
        self.assertEqual(get([see.remote() for _ in range(5)]), [(int(left), left)] * 5)
        ray.kill(actors[0])
        self.assertEqual(get(see.options(num_gpus=2).remote())[-1], ",".join(sorted((left, seen[0][1]))))

    def test_a_call_that_waits_lends_its_gpus(self):
        @ray.remote(num_gpus=2, num_cpus=0)
        def inner():
            return ray.get_gpu_ids()

        @ray.remote(num_gpus=2, num_cpus=0)
        def outer():
            return ray.get_gpu_ids(), ray.get(inner.remote())

        mine, lent = get(outer.remote())
        self.assertEqual((len(set(mine)), len(set(lent))), (2, 2))

    def test_more_are_counted_than_are_named(self):
        program = """
import menger.runtime as ray
ray.init(num_cpus=1, num_gpus=2)
print(ray.get(ray.remote(num_gpus=2)(ray.get_gpu_ids).remote()))
"""
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "5", "PYTHONPATH": str(ROOT / "python")}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.stdout, "[5]\n", done.stderr)

    def test_a_process_sees_the_same_all_its_life(self):
        """As a library does that asks once."""

        def see():
            now = os.environ["CUDA_VISIBLE_DEVICES"]
            time.sleep(0.01)
            return vars(os).setdefault("seen_first", now), now

        see = ray.remote(see)
        for amount in (0, 1, 0, 2, 0.5, 0):
            for first, now in get([see.options(num_gpus=amount).remote() for _ in range(8)]):
                self.assertEqual(first, now)
                self.assertEqual(len([name for name in now.split(",") if name]), -(-amount // 1))

    def test_parts_share_one(self):
        halves = [OnGpu.options(num_gpus=0.5).remote() for _ in range(2)]
        self.assertEqual(*get([each.gpus.remote() for each in halves]))

    def test_whoever_asked_for_none_has_none(self):
        @ray.remote
        def see():
            return ray.get_gpu_ids()

        self.assertEqual(get(see.remote()), [])
        self.assertEqual(ray.get_gpu_ids(), [])
        with self.assertRaisesRegex(ValueError, "num_gpus is 1.5"):
            see.options(num_gpus=1.5).remote()


class References(unittest.TestCase):
    def test_know_their_calls(self):
        @ray.remote(num_returns=3)
        def asked():
            context = ray.get_runtime_context()
            return context.get_task_id(), context.get_task_id(), context.get_job_id()

        first, second, third = asked.remote()
        self.assertEqual(first.task_id().hex(), get(first))
        self.assertEqual(second.task_id().hex(), get(second))
        self.assertEqual(third.job_id().hex(), get(third))
        self.assertFalse(first.is_nil())

    def test_of_callbacks(self):
        done, come = [], threading.Event()
        ray.put(5)._on_completed(lambda value: (done.append(value), come.set()))
        self.assertTrue(come.wait(PATIENCE_S))
        self.assertEqual(done, [5])


class Node(unittest.TestCase):
    def test_what_there_is_of_actors_and_workers(self):
        lists = Asked.options(name="listed").remote()
        process = get(lists.process.remote())
        found = state.get_actor(lists._actor_id.hex())
        self.assertEqual((found.name, found["state"], found.pid, found.ray_namespace), ("listed", "ALIVE", process, NAMESPACE))
        self.assertEqual(state.list_actors(filters=[("name", "=", "nobody")]), [])
        self.assertIn(process, [each.pid for each in state.list_workers()])
        self.assertEqual([each.node_id for each in state.list_nodes()], [ray.get_runtime_context().get_node_id()])
        ray.kill(lists)
        wait_until(lambda: state.get_actor(lists._actor_id.hex()).state == "DEAD")
        with self.assertRaisesRegex(ValueError, "filters has '<'; it must be"):
            state.list_actors(filters=[("name", "<", "a")])

    def test_tasks_that_run(self):
        stop = tempfile.mktemp()

        @ray.remote
        def wait_for_file():
            while not os.path.exists(stop):
                time.sleep(0.01)

        call = wait_for_file.remote()
        wait_until(lambda: state.list_tasks(filters=[("name", "=", "wait_for_file"), ("state", "=", "RUNNING")]))
        pathlib.Path(stop).touch()
        get(call)
        os.unlink(stop)

    def test_resources(self):
        there = ray.cluster_resources()
        of_the_node = {name: there.pop(name) for name in ("memory", "object_store_memory", *NODES)}
        self.assertEqual(there, {"CPU": 4.0, "GPU": 3.0, "wheel": 2.0})
        self.assertTrue(all(amount >= 1 for amount in of_the_node.values()), of_the_node)
        actor = Asked.options(num_cpus=1, resources={"wheel": 2}).remote()
        get(actor.process.remote())
        free = lambda: {name: ray.available_resources().get(name, 0.0) for name in there}
        wait_until(lambda: free() == {"CPU": 3.0, "GPU": 3.0, "wheel": 0.0})  # Others have ended, too.
        ray.kill(actor)
        wait_until(lambda: free() == there)
        (node,) = ray.nodes()
        self.assertEqual((node["NodeID"], node["Alive"]), (ray.get_runtime_context().get_node_id(), True))

    def test_the_memory_that_was_asked_for(self):
        ask = ray.remote(memory=5000)(lambda: ray.get_runtime_context().get_assigned_resources())
        self.assertEqual(get(ask.remote()), {"CPU": 1.0, "memory": 5000})

    def test_a_task_may_ask_too(self):
        @ray.remote(num_cpus=1)
        def ask():
            return ray.available_resources()["CPU"], ray.cluster_resources()["CPU"]

        wait_until(lambda: get(ask.remote()) == (3.0, 4.0))

    def test_the_timeline(self):
        @ray.remote
        def seen_in_the_timeline():
            pass

        get(seen_in_the_timeline.remote())
        self.assertTrue(any("seen_in_the_timeline" in each["name"] for each in ray.timeline()))
        with tempfile.NamedTemporaryFile("r") as file:
            ray.timeline(file.name)
            self.assertTrue(json.load(file))

    def test_names_and_namespaces(self):
        one, other = Asked.options(name="bert").remote(), Asked.options(name="bert", namespace="numbers").remote()
        self.assertNotEqual(*get([one.process.remote(), other.process.remote()]))
        self.assertEqual(ray.get_actor("bert"), one)
        self.assertEqual(ray.get_actor("bert", namespace="numbers"), other)
        self.assertIn("bert", ray.util.list_named_actors())
        everywhere = ray.util.list_named_actors(all_namespaces=True)
        self.assertIn({"name": "bert", "namespace": "numbers"}, everywhere)
        self.assertIn({"name": "bert", "namespace": NAMESPACE}, everywhere)
        self.assertEqual(get(other.ask.remote())["name"], "bert")
        for wrong in (None, ""):
            with self.assertRaisesRegex(ValueError, "not empty"):
                ray.get_actor(wrong)
        with self.assertRaisesRegex(ValueError, "namespace is empty"):
            ray.get_actor("bert", namespace="")
        with self.assertRaisesRegex(TypeError, "namespace is 3"):
            Asked.options(namespace=3)

    def test_who_was_found_by_name_keeps_no_actor(self):
        actor = Asked.options(name="carl").remote()
        found = ray.get_actor("carl")
        get(found.process.remote())
        del actor
        wait_until(lambda: "carl" not in ray.util.list_named_actors())
        with self.assertRaises(ray.exceptions.ActorDiedError):
            get(found.process.remote())


@ray.remote
class Mortal:
    def __init__(self, file=None):
        self.file = file
        if file is not None:
            atexit.register(pathlib.Path(file).write_text, "done")

    def end(self):
        ray.actor.exit_actor()

    def ping(self):
        return "pong"


@ray.remote
class AsyncMortal:
    def __init__(self, ends=False):
        if ends:
            asyncio.get_running_loop().create_task(self.end())

    async def end(self):
        ray.actor.exit_actor()

    async def leave_an_end(self):
        asyncio.get_running_loop().create_task(self.end())


class Ends(unittest.TestCase):
    def test_one_that_ends_itself_is_not_made_again(self):
        for actor in (Mortal.options(max_restarts=3).remote(), AsyncMortal.options(max_restarts=3).remote()):
            with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "ended itself"):
                get(actor.end.remote())
            with self.assertRaises(ray.exceptions.ActorDiedError):
                get(actor.end.remote())

    def test_handlers_of_its_exit_run(self):
        for end in (lambda actor: actor.end, lambda actor: actor.__ray_terminate__):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "file"
                actor = Mortal.remote(str(file))
                before = actor.ping.remote()
                with self.assertRaises(ray.exceptions.RayActorError):
                    get(end(actor).remote())
                self.assertEqual(get(before), "pong")
                self.assertEqual(file.read_text(), "done")

    def test_they_run_when_nobody_refers_to_it_any_longer(self):
        with tempfile.TemporaryDirectory() as folder:
            handled, shut_down = (pathlib.Path(folder) / name for name in ("handled", "shut down"))

            class Ends:
                def __init__(self):
                    atexit.register(handled.write_text, "done")

                def ping(self):
                    return "pong"

                def __ray_shutdown__(self):
                    shut_down.write_text("done")
                    ray.actor.exit_actor()  # It ends already.

            actor = ray.remote(Ends).remote()
            self.assertEqual(get(actor.ping.remote()), "pong")
            self.assertFalse(shut_down.exists())
            del actor
            wait_until(lambda: handled.exists() and shut_down.exists())

    def test_what_a_coroutine_has_left_may_end_it(self):
        one, other = AsyncMortal.remote(), AsyncMortal.remote(ends=True)
        get(one.__ray_ready__.remote())
        _or_none(one.leave_an_end)
        for actor in (one, other):
            wait_until(lambda actor=actor: _or_none(actor.__ray_ready__) is None)

    def test_only_an_actor_can_end_itself(self):
        with self.assertRaisesRegex(TypeError, "non-actor worker"):
            ray.actor.exit_actor()

    def test_a_function_on_an_actor(self):
        actor = Mortal.remote(os.devnull)
        self.assertEqual(get(actor.__ray_call__.remote(lambda itself, more: itself.file + more, "s")), os.devnull + "s")

    def test_a_construction_that_raises_is_the_cause(self):
        @ray.remote
        class Stillborn:
            def __init__(self):
                raise KeyError("missing")

            def ping(self):
                pass

        with self.assertRaisesRegex(ray.exceptions.ActorDiedError, "missing") as caught:
            get(Stillborn.remote().ping.remote())
        self.assertIsInstance(caught.exception.cause, KeyError)


if __name__ == "__main__":
    unittest.main()
