"""Programs of a cluster that find each other's actors by their names, and actors that outlive the program that makes them."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from python_runtime import PATIENCE_S, ROOT, check_library, get, ray
from python_runtime_nodes import PROGRAM, Nodes, await_nodes, run_program

NODES = []

COUNTER = """
import os
import menger.runtime as ray

@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self, more=1):
        self.count += more
        return self.count

    def twice(self):
        return ray.get(double.remote(self.count))

    def up_to(self, count):
        for each in range(count):
            yield [each, ray.put(each)] if each % 2 else each
        raise ValueError("there is no more")

    def die(self):
        os._exit(1)

@ray.remote
def double(value):
    return 2 * value
"""


def setUpModule():
    check_library()
    NODES.append(Nodes())
    ray.init(NODES[0].address, namespace="shared")
    await_nodes(2)


def tearDownModule():
    ray.shutdown()
    for nodes in NODES:
        nodes.end()
        nodes.folder.cleanup()


def run(source, namespace="shared"):
    """What another program has printed, which knows of Counter."""
    joined = f"{COUNTER}\nray.init(namespace={namespace!r})\n{textwrap.dedent(source)}"
    with tempfile.TemporaryDirectory() as folder:
        done = run_program(NODES[0].address, joined, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@contextlib.contextmanager
def killed_program(source):
    """One that runs until the end of the `with`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "program.py")
        path.write_text(f"{COUNTER}\nray.init(namespace='shared')\n{source}\nprint(flush=True)\nimport time\ntime.sleep(600)\n")
        variables = {**os.environ, "MENGER_ADDRESS": NODES[0].address, "PYTHONPATH": str(ROOT / "python")}
        with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, env=variables) as program:
            program.stdout.readline()
            try:
                yield
            finally:
                program.kill()


def await_no_actor(name):
    """Names of programs that have ended are free when their lease is given back."""
    end = time.monotonic() + PATIENCE_S
    while name in ray.util.list_named_actors() and time.monotonic() < end:
        time.sleep(0.02)


@ray.remote
class Adder:
    def __init__(self):
        self.sum = 0

    def add(self, more):
        self.sum += more
        return self.sum


class NamesTest(unittest.TestCase):
    def test_another_program_finds_an_actor_by_its_name_and_calls_it(self):
        adder = Adder.options(name="adder").remote()
        self.assertEqual(get(adder.add.remote(1)), 1)
        printed = run("""
            found = ray.get_actor("adder")
            print(ray.get([found.add.remote(10), found.add.remote(100)]))

            @ray.remote
            def add(handle):
                return ray.get([handle.add.remote(1000), ray.get_actor("adder").add.remote(10000)])

            print(ray.get(add.remote(found)))
            print(ray.util.list_named_actors(), ray.util.list_named_actors(all_namespaces=True))
        """)
        self.assertEqual(printed[:2], ["[11, 111]", "[1111, 11111]"])
        self.assertIn("'adder'", printed[2].split("] [")[0])
        self.assertIn("{'name': 'adder', 'namespace': 'shared'}", printed[2])
        self.assertEqual(get(adder.add.remote(0)), 11111)

    def test_a_name_is_one_actors_in_all_programs_of_the_namespace(self):
        adder = Adder.options(name="one").remote()
        get(adder.add.remote(5))
        printed = run("""
            try:
                Counter.options(name="one").remote()
            except ValueError as error:
                print("already taken" in str(error))
            print(ray.get(Counter.options(name="one", get_if_exists=True).remote().add.remote(1)))
            print(ray.get(Counter.options(name="one", namespace="other").remote().add.remote()))
        """)
        self.assertEqual(printed, ["True", "6", "1"])
        for namespace in (None, "third"):
            self.assertEqual(run("print(ray.util.list_named_actors())", namespace), ["[]"])

    def test_a_name_is_free_when_its_actor_or_program_ends(self):
        adder = Adder.options(name="ends").remote()
        printed = run("""
            ray.kill(ray.get_actor("ends"))
            while "ends" in ray.util.list_named_actors():
                pass
            print(ray.get(Counter.options(name="ends").remote().add.remote()))
        """)
        self.assertEqual(printed, ["1"])
        with self.assertRaises(ray.exceptions.RayActorError):
            get(adder.add.remote(1))
        await_no_actor("ends")
        with self.assertRaises(ValueError):
            ray.get_actor("ends")
        self.assertEqual(get(Adder.options(name="ends").remote().add.remote(7)), 7)

    def test_what_a_program_has_killed_ends_also_if_it_leaves_at_once(self):
        adder = Adder.options(name="killed").remote()
        get(adder.add.remote(1))
        run("ray.kill(ray.get_actor('killed'))")
        with self.assertRaises(ray.exceptions.RayActorError):
            get([adder.add.remote(1) for _ in range(100)])

    def test_actors_of_a_program_that_is_gone_are_dead(self):
        with killed_program("made = Counter.options(name='short').remote()\nray.get(made.add.remote())"):
            short = ray.get_actor("short")
            self.assertEqual(get(short.add.remote(1)), 2)
        with self.assertRaises(ray.exceptions.ActorDiedError):
            for _ in range(1000):
                get(short.add.remote(1))
                time.sleep(0.01)

    def test_programs_that_make_an_actor_at_once_have_the_same_one(self):
        source = """
            made = Counter.options(name="race", get_if_exists=True, lifetime="detached").remote()
            print(ray.get(made.add.remote()))
        """
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            counts = [int(printed[0]) for printed in pool.map(lambda _: run(source), range(3))]
        self.assertEqual(sorted(counts), [1, 2, 3])
        ray.kill(ray.get_actor("race"))


class DetachedTest(unittest.TestCase):
    def members(self):
        command = [PROGRAM, "status", "--address", NODES[0].address, "--json"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        return json.loads(asked.stdout)["nodes"]

    def test_a_detached_actor_outlives_its_program_and_the_death_of_its_worker(self):
        printed = run("""
            made = Counter.options(name="stays", lifetime="detached", max_restarts=1).remote()
            print(ray.get([made.add.remote(3), made.twice.remote()]))
        """)
        self.assertEqual(printed, ["[3, 6]"])
        stays = ray.get_actor("stays")
        self.assertEqual(get(stays.add.remote(1)), 4)
        stays.die.remote()
        self.assertEqual(get(stays.add.remote(5)), 5)  # Made again, of the program's files.
        self.assertEqual(get(stays.twice.remote()), 10)
        self.assertEqual(run("print(ray.get(ray.get_actor('stays').add.remote(1)))"), ["6"])
        ray.kill(stays)
        await_no_actor("stays")
        with self.assertRaises(ray.exceptions.RayActorError):
            get(stays.add.remote(1))

    def test_streams_of_a_detached_actor_are_read_by_all(self):
        read = """
            def read(stream):
                items, why = [], None
                try:
                    for item in stream:
                        item = ray.get(item)
                        items.append(ray.get(item[1]) if isinstance(item, list) else item)
                except ValueError as error:
                    why = "no more" in str(error)
                return why, items == list(range(200))

            def stream(actor):
                return actor.up_to.options(num_returns="streaming").remote(200)

            @ray.remote
            def read_there(actor):
                return read(stream(actor))

            actor = ray.get_actor("streams") if known else Counter.options(name="streams", lifetime="detached").remote()
            print(read(stream(actor)), ray.get([read_there.remote(actor) for _ in range(2)]))
            dropped = actor.up_to.options(num_returns="streaming").remote(200)
            del dropped
            print(ray.get(actor.add.remote(1)))
        """
        every = "(True, True) [(True, True), (True, True)]"
        self.assertEqual(run(textwrap.dedent(read).replace("known", "False")), [every, "1"])
        self.assertEqual(run(textwrap.dedent(read).replace("known", "True")), [every, "2"])
        ray.kill(ray.get_actor("streams"))

    def test_a_program_may_end_as_soon_as_it_has_asked_for_the_actor(self):
        run("Counter.options(name='late', lifetime='detached').remote()")
        late = ray.get_actor("late")
        self.assertEqual(get(late.add.remote(1)), 1)
        ray.kill(late)

    def test_a_task_makes_a_detached_actor_that_outlives_it(self):
        printed = run("""
            @ray.remote
            def make():
                Counter.options(name="of_task", lifetime="detached").remote()

            ray.get(make.remote())
            print(ray.get(ray.get_actor("of_task").add.remote(2)))
        """)
        self.assertEqual(printed, ["2"])
        self.assertEqual(get(ray.get_actor("of_task").add.remote(2)), 4)
        ray.kill(ray.get_actor("of_task"))

    def test_what_a_program_that_has_ended_owned_is_lost_also_for_those_who_come_later(self):
        run("""
            @ray.remote
            class Holder:
                def hold(self, held):
                    self.held = held

                def give(self):
                    return self.held

            holder = Holder.options(name="holds", lifetime="detached").remote()
            ray.get(holder.hold.remote([ray.put(1), double.remote(2), Counter.remote()]))
        """)
        printed = run("""
            import time

            holder = ray.get_actor("holds")
            *values, counter = ray.get(holder.give.remote())
            for value in values:
                try:
                    ray.get(value, timeout=40)
                except ray.exceptions.OwnerDiedError:
                    print("lost")
            for _ in range(400):
                try:
                    ray.get(counter.add.remote())
                except ray.exceptions.ActorUnavailableError:
                    time.sleep(0.1)
                except ray.exceptions.ActorDiedError:
                    print("dead")
                    break
            print(len(ray.get(holder.give.remote())))
            ray.kill(holder)
        """)
        self.assertEqual(printed, ["lost", "lost", "dead", "3"])

    def test_who_keeps_them_ends_when_nothing_is_to_be_kept(self):
        run("Counter.options(name='last', lifetime='detached').remote()")
        ray.kill(ray.get_actor("last"))
        end = time.monotonic() + PATIENCE_S
        while sum(each["job"] != 0 for each in self.members()) > 1 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(sum(each["job"] != 0 for each in self.members()), 1)


if __name__ == "__main__":
    unittest.main()
