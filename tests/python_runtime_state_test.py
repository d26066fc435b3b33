"""What others see of a job of menger.runtime: the names of its processes, and what util.state lists."""

import asyncio
import os
import pathlib
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray

from menger.runtime.util import state


def setUpModule():
    check_library()
    ray.init(num_cpus=2)


tearDownModule = ray.shutdown


def shown(process="self"):
    """The first of a process's arguments, as `ps` shows it."""
    return pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].decode()


def short_name(process="self"):
    return pathlib.Path(f"/proc/{process}/comm").read_text().strip()


def wait_until(is_so):
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("it is not so, and does not become so")
        time.sleep(0.01)


@ray.remote
def say_title():
    return shown(), short_name(), os.getpid()


@ray.remote
class Titled:
    def __init__(self):
        self.first = shown()

    def titles(self):
        return self.first, shown(), os.getpid()

    def items(self):
        yield shown()
        yield shown()


class Titles(unittest.TestCase):
    def test_a_worker_is_shown_by_the_name_of_its_call(self):
        title, name, process = get(say_title.remote())
        self.assertEqual((title, name), ("ray::say_title", "ray::say_title"))
        wait_until(lambda: shown(process) == short_name(process) == "ray::IDLE")
        self.assertEqual(get(say_title.options(name="short").remote())[:2], ("ray::short", "ray::short"))
        title, name, _ = get(say_title.options(name="long" * 100).remote())
        self.assertTrue(title.startswith("ray::" + "long" * 30), title)
        self.assertEqual(name, "ray::longlonglo")

    def test_an_actor_is_shown_by_its_class_and_method(self):
        actor = Titled.options(name="somebody").remote()
        first, title, process = get(actor.titles.remote())
        self.assertEqual((first, title), ("ray::Titled.__init__", "ray::Titled.titles"))
        wait_until(lambda: shown(process) == short_name(process) == "ray::Titled")
        self.assertEqual(get(actor.titles.options(name="other").remote())[1], "ray::other")
        self.assertEqual([get(each) for each in actor.items.remote()], ["ray::Titled.items"] * 2)


@ray.remote
class Gate:
    def __init__(self):
        self.opened = asyncio.Event()

    async def wait(self):
        await self.opened.wait()

    async def open(self):
        self.opened.set()


@ray.remote(max_retries=0)
def pass_gate(gate, fails=False):
    ray.get(gate.wait.remote())
    if fails:
        raise ValueError("it fails")


def states_of(name):
    return sorted(each.state for each in state.list_tasks(filters=[("name", "=", name)]))


class Tasks(unittest.TestCase):
    def test_are_known_from_their_call_to_their_end(self):
        gate = Gate.remote()
        first = pass_gate.options(name="first").remote(gate)
        after = pass_gate.options(name="after", num_cpus=0).remote(gate, first)
        task = first.task_id().hex()
        wait_until(lambda: states_of("first") == ["RUNNING"] and states_of("Gate.wait") == ["RUNNING"])
        self.assertEqual(states_of("after"), ["PENDING_ARGS_AVAIL"])
        (found,) = state.list_tasks(filters=[("TASK_ID", "=", task)])
        self.assertEqual((found.task_id, found.name, found.type, found.actor_id), (task, "first", "NORMAL_TASK", None))
        self.assertEqual(shown(found.worker_pid), "ray::first")
        (method,) = state.list_tasks(filters=[("type", "=", "ACTOR_TASK"), ("state", "=", "RUNNING")])
        self.assertEqual(method.actor_id, gate._actor_id.hex())
        get(gate.open.remote())
        get(first)
        with self.assertRaises(ValueError):
            get(pass_gate.options(name="fails").remote(gate, fails=True))
        get(after)
        wait_until(lambda: states_of("first") == ["FINISHED"])
        self.assertEqual(state.get_task(task).state, "FINISHED")
        (failed,) = state.list_tasks(filters=[("name", "=", "fails")])
        self.assertEqual((failed.state, failed.error_type), ("FAILED", "TASK_EXECUTION_EXCEPTION"))
        summary = state.summarize_tasks()["cluster"]["summary"]
        self.assertEqual(summary["first"]["state_counts"], {"FINISHED": 1})

    def test_that_made_an_actor_are_counted_as_such(self):
        before = state.summarize_tasks()["cluster"]
        actor = Titled.remote()
        get(actor.titles.remote())
        wait_until(lambda: states_of("Titled.titles").count("FINISHED") > 0)
        after = state.summarize_tasks()["cluster"]
        self.assertEqual(after["total_tasks"], before["total_tasks"])
        self.assertEqual(after["total_actor_scheduled"], before["total_actor_scheduled"] + 1)
        self.assertEqual(after["summary"]["Titled.__init__"]["type"], "ACTOR_CREATION_TASK")

    def test_of_an_actor_wait_for_their_turn(self):
        gate = Gate.options(max_concurrency=1).remote()
        gate.wait.options(name="one").remote()
        gate.wait.options(name="other").remote()
        wait_until(lambda: states_of("one") == ["RUNNING"])
        self.assertEqual(states_of("other"), ["PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"])


class Actors(unittest.TestCase):
    def test_are_known_when_they_are_dead(self):
        actor = Titled.options(name="known").remote()
        identity = actor._actor_id.hex()
        process = get(actor.titles.remote())[2]
        found = state.get_actor(identity)
        self.assertEqual((found.class_name, found.name, found.state, found.pid), ("Titled", "known", "ALIVE", process))
        ray.kill(actor)
        del actor
        wait_until(lambda: state.get_actor(identity).state == "DEAD")
        self.assertEqual(state.get_actor(identity).class_name, "Titled")
        self.assertIn("DEAD", state.summarize_actors()["cluster"]["summary"]["Titled"]["state_counts"])


if __name__ == "__main__":
    unittest.main()
