"""A cluster whose head keeps the control state in a Redis, too: either may be killed and begun again while programs run."""

import concurrent.futures
import os
import shutil
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

    def begin_head(self):
        self.begin("--head", "--listen", self.address, "--cpus", "1", "--resources", "first=1")
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
        self.assertIn("has a head already, which goes on: process", second.stderr)


class AddressTest(unittest.TestCase):
    def test_what_is_wrong_with_an_address_is_said(self):
        for store, options, said in (
            ("somewhere", ["--head"], "does not begin with redis://"),
            ("redis://127.0.0.1:1", ["--join", "127.0.0.1:1"], "--store is the head's"),
            ("redis://u:secret@127.0.0.1:x", ["--head"], "has the port 'x'"),
        ):
            with self.subTest(store):
                done = subprocess.run(
                    [PROGRAM, "node", *options, "--store", store], capture_output=True, text=True, timeout=PATIENCE_S, check=False
                )
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr)
                self.assertNotIn("secret", done.stderr)


if __name__ == "__main__":
    check_library()
    unittest.main()
