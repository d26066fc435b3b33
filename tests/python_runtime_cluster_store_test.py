"""A cluster whose head keeps the control state in a Redis, too: either may be killed and begun again while programs run."""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from python_runtime import PATIENCE_S, check_library, get, ray
from python_runtime_nodes import PROGRAM, Nodes, await_nodes, run_program

REDIS = shutil.which("redis-server")


class Redis:
    """A server at a port of its own, which keeps nothing on a disk."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"redis://127.0.0.1:{self.port}"
        self.begin()

    def begin(self):
        self.process = subprocess.Popen(
            [REDIS, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""], stdout=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.01)
        raise TimeoutError("no Redis is there")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def await_records(self, table, count):
        """Until the head has written so many of them there."""
        end = time.monotonic() + PATIENCE_S
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            while time.monotonic() < end:
                connection.sendall(f"HLEN {table}\r\n".encode())
                if connection.recv(100) == f":{count}\r\n".encode():
                    return
                time.sleep(0.01)
        raise TimeoutError(f"{table} has not {count} records")


class KeptNodes(Nodes):
    """Their head can be begun again."""

    def __init__(self, store):
        self.store = store
        super().__init__()

    def begin(self, *options, log=None):
        return super().begin(*options, *(("--store", self.store) if "--head" in options else ()), log=log)

    def kill_head(self):
        head = self.processes.pop(0)
        head.kill()
        head.wait()
        head.stdout.close()

    def kill_keepers(self):
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if words[1:4] == ["node", "keep", self.address]:
                os.kill(int(process.name), signal.SIGKILL)

    def begin_head(self, *options):
        self.begin("--head", "--listen", self.address, "--cpus", "1", "--resources", "first=1", *options)
        self.processes.insert(0, self.processes.pop())


@ray.remote
def double(value):
    return 2 * value


@ray.remote
class Counter:
    def __init__(self):
        self.count = 0

    def add(self):
        self.count += 1
        return self.count


@unittest.skipUnless(REDIS, "there is no redis-server")
class StoreTest(unittest.TestCase):
    def setUp(self):
        self.redis = Redis()
        self.nodes = KeptNodes(self.redis.address)
        ray.init(self.nodes.address, namespace="kept")
        await_nodes(2)

    def tearDown(self):
        ray.shutdown()
        self.nodes.end()
        self.nodes.folder.cleanup()
        self.redis.kill()

    def log(self):
        with open(self.nodes.log) as log:
            return log.read()

    def test_the_head_is_killed_and_comes_back(self):
        counter = Counter.options(name="counter", resources={"second": 0.5}).remote()
        self.assertEqual(get(counter.add.remote()), 1)
        stays = Counter.options(name="stays", lifetime="detached", resources={"second": 0.5}).remote()
        self.assertEqual(get(stays.add.remote()), 1)
        get([double.options(resources={"second": 0.1}).remote(i) for i in range(50)])  # Its workers are there.
        self.nodes.kill_head()
        here = [double.options(resources={"second": 0.1}).remote(i) for i in range(50)]
        self.assertEqual(get(here), list(range(0, 100, 2)))
        self.nodes.begin_head()
        self.assertEqual(get(double.options(resources={"first": 1}).remote(4)), 8)
        self.assertEqual(get(counter.add.remote()), 2)
        # Longer than leases are, which the new head does not know.
        time.sleep(11)
        self.assertEqual(get(counter.add.remote()), 3)
        found = run_program(
            self.nodes.address,
            "import menger.runtime as ray\nray.init(namespace='kept')\nprint(ray.get(ray.get_actor('counter').add.remote()))",
            self.nodes.folder.name,
        )
        self.assertEqual(found.stdout, "4\n", found.stderr)
        with self.assertRaisesRegex(ValueError, "'counter' is already taken"):
            Counter.options(name="counter").remote()
        self.assertEqual(get(Counter.options(name="another").remote().add.remote()), 1)
        # The keeper of detached actors has lived on.
        self.assertEqual(get(stays.add.remote()), 2)
        second = Counter.options(name="stays too", lifetime="detached").remote()
        self.assertEqual(get(second.add.remote()), 1)
        keepers = [line for line in self.log().splitlines() if "have a keeper" in line]
        self.assertEqual(len(keepers), 1, keepers)

    def await_another(self, name):
        """Who is found before it is known that the owner is gone died with him."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = ray.get_actor(name)
            try:
                get(found.__ray_ready__.remote())
                return found
            except ray.exceptions.RayError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def test_detached_actors_outlive_the_machine_of_the_head(self):
        """What dies with it is the head, the keepers that it has started, and what it has of their programs."""
        making = """import menger.runtime as ray
ray.init(namespace="kept")

@ray.remote
class Named:
    def __init__(self, name, ballast):
        self.said = [f"{name} with {len(ballast)}"]

    def say(self):
        self.said.append("again")
        return self.said

once = Named.options(name="once", lifetime="detached", max_restarts=1).remote("once", bytes(300_000))
never = Named.options(name="never", lifetime="detached").remote("never", b"")
print(ray.get([once.say.remote(), never.say.remote()]))
"""
        made = run_program(self.nodes.address, making, self.nodes.folder.name)
        self.assertIn("['once with 300000', 'again']", made.stdout, made.stderr)
        self.redis.await_records("menger:actors", 1)
        self.nodes.kill_head()
        self.nodes.kill_keepers()
        self.nodes.begin_head("--cache", os.path.join(self.nodes.folder.name, "another"))
        once = self.await_another("once")
        self.assertEqual(get(once.say.remote()), ["once with 300000", "again"])
        self.assertEqual(get(once.say.remote()), ["once with 300000", "again", "again"])
        with self.assertRaisesRegex(ValueError, "'never'"):
            ray.get_actor("never")

    def test_redis_is_killed_and_comes_back_empty(self):
        first = Counter.options(name="first", resources={"second": 1}).remote()
        self.assertEqual(get(first.add.remote()), 1)
        get([double.remote(i) for i in range(50)])
        self.redis.kill()
        self.assertEqual(get([double.remote(i) for i in range(50)]), list(range(0, 100, 2)))
        with concurrent.futures.ThreadPoolExecutor() as threads:
            making = threads.submit(Counter.options(name="second", resources={"second": 1}).remote)  # Its name has to be safe.
            time.sleep(1)
            self.assertFalse(making.done())
            self.redis.begin()
            second = making.result()
        self.assertEqual(get(second.add.remote()), 1)
        self.nodes.kill_head()
        self.nodes.begin_head()
        self.assertEqual(get(first.add.remote()), 2)
        names = sorted(ray.util.list_named_actors())
        self.assertEqual(names, ["first", "second"])

    def test_a_second_head_is_refused(self):
        command = [PROGRAM, "node", "--head", "--listen", "127.0.0.1:0", "--store", self.redis.address]
        with tempfile.TemporaryDirectory() as folder:
            second = subprocess.run(
                command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env={**os.environ, "TMPDIR": folder}
            )
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("has a head already, which goes on: \"process", second.stderr)


class OptionsTest(unittest.TestCase):
    def check_refused(self, options, said, **variables):
        with self.subTest(said):
            command, environment = [PROGRAM, "node", *options], {**os.environ, **variables}
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
            return done.stderr

    def test_what_is_wrong_with_an_address_is_said(self):
        for store, options, said in (
            ("somewhere", ["--head"], "does not begin with redis://"),
            ("redis://127.0.0.1:1", ["--join", "127.0.0.1:1"], "--store is the head's"),
            ("redis://u:secret@127.0.0.1:x", ["--head"], "has the port 'x'"),
        ):
            self.assertNotIn("secret", self.check_refused([*options, "--store", store], said))

    def test_what_no_node_may_have_or_be_is_said(self):
        head = ["--head", "--listen", "127.0.0.1:0"]
        self.check_refused([*head, "--resources", "node:x=1"], "--resources has 'node:x'")
        self.check_refused([*head, "--resources", "CPU=1"], "say it as --cpus 1")
        self.check_refused([*head, "--metrics", "foo"], "--metrics is 'foo'; give a port")
        self.check_refused(head, "MENGER_CLUSTER_TOKEN_FILE: cannot read '/none'", MENGER_CLUSTER_TOKEN_FILE="/none")


if __name__ == "__main__":
    check_library()
    unittest.main()
