"""A cluster of menger.runtime, looked at from outside: `menger status`, `menger node list`, `menger timeline`, and the page of
metrics of its nodes."""

import json
import os
import re
import subprocess
import time
import unittest
import urllib.error
import urllib.request

from python_runtime import PATIENCE_S, check_library, get, ray
from python_runtime_nodes import PROGRAM, Nodes, await_nodes

NODES = []


def setUpModule():
    check_library()
    NODES.append(Nodes())
    ray.init(NODES[0].address)
    await_nodes(2)


def tearDownModule():
    ray.shutdown()
    for nodes in NODES:
        nodes.end()
        nodes.folder.cleanup()


def run(*arguments, **changed):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MENGER_")}
    command = [PROGRAM, *[str(argument) for argument in arguments]]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env={**variables, **changed})


def status(*arguments):
    asked = run("status", "--address", NODES[0].address, *arguments)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout


def look():
    """Nodes and drivers, each what the cluster knows of it and what it says itself."""
    members = [one for one in json.loads(status("--json"))["nodes"] if one["name"] != "stopped"]
    return [one for one in members if one["job"] == 0], [one for one in members if one["job"] != 0]


def await_look(holds):
    end = time.monotonic() + PATIENCE_S
    while not holds(*look()) and time.monotonic() < end:
        time.sleep(0.02)
    return look()


def free(node, name):
    return next(resource["free"] for resource in node["status"]["resources"] if resource["name"] == name)


class Status(unittest.TestCase):
    def test_nodes_say_what_they_have_and_whom_they_work_for(self):
        @ray.remote(resources={"second": 1}, num_cpus=0)
        class Holder:
            def ready(self):
                return True

        holder = Holder.remote()
        get(holder.ready.remote())
        # Nodes of tests before this one may not have left yet.
        nodes, (job,) = await_look(lambda nodes, _: len(nodes) == 2 and free(nodes[1], "second") == 1)
        self.assertEqual([node["name"] for node in nodes], ["", "second"])
        self.assertEqual([node["state"] for node in nodes], ["up", "up"])
        self.assertEqual([free(nodes[1], "second"), free(nodes[1], "cpu"), free(nodes[0], "first")], [1, 2, 1])
        lent = [worker for worker in nodes[1]["status"]["workers"] if worker["lent_to"] == job["id"]]
        self.assertEqual([worker["guest"] for worker in lent], [True])
        self.assertEqual([actor["name"] for actor in job["status"]["actors"]], ["Holder"])
        text = status()
        self.assertIn(f"1 for job {job['job']}", text)
        self.assertIn("second 1 of 2", text)
        self.assertIn("actors   1,", text)
        self.assertIn(f"process {os.getpid()}", text)
        ray.kill(holder)

    def test_one_job_says_what_it_does_and_what_it_lost(self):
        @ray.remote(max_retries=0)
        def crashes():
            os._exit(3)

        with self.assertRaises(ray.exceptions.WorkerCrashedError):
            get(crashes.remote())
        _, (job,) = look()
        for text in (status(job["job"]), status()):
            self.assertIn("ended with exit status 3, while it ran crashes", text)
        self.assertGreater(json.loads(status("--json", job["job"]))["tasks"]["failed"], 0)
        self.assertIn('menger_tasks_total{what="failed"}', status("--metrics", job["job"]))
        self.assertIn('menger_resource{name="second",amount="total"} 2', status("--metrics", "second"))

    def test_a_variable_names_the_cluster_and_local_this_machine(self):
        address = NODES[0].address
        self.assertIn("second", run("status", MENGER_ADDRESS=address).stdout)
        self.assertIn("second", run("node", "list", MENGER_ADDRESS=address).stdout)
        nowhere = run("status", "--address", "local", MENGER_ADDRESS=address, XDG_RUNTIME_DIR=NODES[0].folder.name)
        self.assertIn("no job", nowhere.stderr)

    def test_what_is_not_there_is_named_with_what_is(self):
        wrong = run("status", "--address", NODES[0].address, "nobody")
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, r"no job or node 'nobody'; there are: [0-9a-f]{8}, second \([0-9a-f]{8}\), job \d+")
        self.assertEqual(run("status", "--address", NODES[0].address, "--metrics").returncode, 2)
        self.assertIn("token", run("status", "--address", NODES[0].address, MENGER_CLUSTER_TOKEN="another").stderr)

    def test_a_node_that_says_nothing_is_shown_with_why(self):
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--name", "stopped")
        NODES[0].processes[-1].kill()
        nodes = json.loads(status("--json"))["nodes"]
        stopped = next((node for node in nodes if node["name"] == "stopped"), None)
        if stopped is not None:  # Until the others have found out.
            self.assertIsNone(stopped["status"])
            self.assertNotEqual(stopped["failure"], "")
        self.assertEqual([node["failure"] for node in nodes if node["name"] == "second"], [""])
        NODES[0].end(slice(-1, None))


class Timeline(unittest.TestCase):
    def test_calls_are_under_the_node_that_did_them(self):
        @ray.remote
        def there():
            return ray.get_runtime_context().get_node_id()

        first = get([there.options(resources={"first": 1}, name="at_first").remote() for _ in range(3)])
        second = get([there.options(resources={"second": 1}, name="at_second").remote() for _ in range(3)])
        _, (job,) = look()
        out = os.path.join(NODES[0].folder.name, "timeline.json")
        written = run("timeline", out, job["job"], "--address", NODES[0].address)
        self.assertEqual(written.returncode, 0, written.stderr)
        with open(out) as file:
            events = json.load(file)["traceEvents"]
        processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        workers = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
        done = [event for event in events if event["ph"] == "X" and event["name"].startswith("at_")]
        expected = {"at_first": f"node {first[0][:8]}", "at_second": f"node second ({second[0][:8]})"}
        self.assertEqual({(event["name"], processes[event["pid"]]) for event in done}, set(expected.items()))
        self.assertEqual(len(done), 6)
        self.assertLessEqual({(event["pid"], event["tid"]) for event in done}, workers)


# The text format of Prometheus, version 0.0.4, by its description: names, labels whose values are escaped, and a number.
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([-+0-9.eE]+|\+Inf|-Inf|NaN)")


def parse(text):
    """Samples by name, each as its labels and its value; raises AssertionError where the text breaks the format."""
    assert text.endswith("\n")
    samples, helped, kinds, family = {}, set(), {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in helped, line
            helped.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and name not in kinds and kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total"), line
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            of = re.sub("_(bucket|sum|count)$", "", name) if kinds[family] == "histogram" else name
            assert of == family, line
            assert (name, labels) not in samples, line
            samples[name, labels] = float(value)
    return samples


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        log = os.path.join(NODES[0].folder.name, "third.log")
        # As if it were on another machine: others of this one would read its values where they lie.
        options = ["--listen", "127.0.0.2:0", "--cpus", "1", "--resources", "third=1", "--metrics", "0"]
        NODES[0].begin("--join", NODES[0].address, *options, log=log)
        end = time.monotonic() + PATIENCE_S
        found = None
        while found is None and time.monotonic() < end:
            with open(log) as file:
                found = re.search(r"metrics are at (http://127\.0\.0\.1:\d+/metrics)", file.read())
        cls.page = found.group(1)

    @classmethod
    def tearDownClass(cls):
        NODES[0].end(slice(-1, None))

    def read(self):
        with urllib.request.urlopen(self.page, timeout=PATIENCE_S) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return parse(answer.read().decode())

    def await_metrics(self, holds):
        end = time.monotonic() + PATIENCE_S
        while not holds(self.read()) and time.monotonic() < end:
            time.sleep(0.02)
        return self.read()

    def test_a_node_counts_what_it_does_for_others(self):
        @ray.remote(resources={"third": 1})
        def make(count):
            return bytes(count)

        @ray.remote(resources={"third": 1}, max_retries=0)
        def crashes():
            os._exit(3)

        self.assertEqual(len(get(make.remote(3_000_000))), 3_000_000)
        with self.assertRaises(ray.exceptions.WorkerCrashedError):
            get(crashes.remote())
        now = self.await_metrics(lambda now: ("menger_losses_total", 'cause="ended with exit status 3"') in now)
        self.assertEqual(now["menger_losses_total", 'cause="ended with exit status 3"'], 1)
        self.assertGreaterEqual(now["menger_calls_for_others_total", None], 1)
        self.assertGreaterEqual(now["menger_value_bytes_total", 'way="served"'], 3_000_000)
        self.assertEqual(now["menger_resource", 'name="third",amount="total"'], 1)
        self.assertEqual(now["menger_cluster_members", 'role="driver"'], 1)
        self.assertGreaterEqual(now["menger_cluster_members", 'role="node"'], 3)
        self.assertGreaterEqual(now["menger_cluster_streams", None], 3)
        self.assertGreaterEqual(now["menger_cluster_store_seconds_count", None], 1)

    def test_a_node_counts_the_ends_of_others_by_their_cause(self):
        NODES[0].begin("--join", NODES[0].address, "--cpus", "1", "--name", "stopped")
        self.await_metrics(lambda now: now["menger_cluster_members", 'role="node"'] >= 4)
        NODES[0].processes[-1].kill()
        cause = ("menger_cluster_ends_total", 'cause="unreachable"')
        self.assertGreaterEqual(self.await_metrics(lambda now: cause in now)[cause], 1)
        NODES[0].end(slice(-1, None))

    def test_only_metrics_are_served(self):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(self.page.replace("/metrics", "/"), timeout=PATIENCE_S)
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()


if __name__ == "__main__":
    unittest.main()
