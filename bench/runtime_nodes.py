#!/usr/bin/env python3
"""The runtime on several nodes of this machine, beside Ray's cluster, a bare socket and iperf3, in the same run.

    bench/runtime_nodes.py [--parts latency pauses calls bytes broadcast locality many rows] [--rows TEXT...] [--seconds S] [--without-ray]

Nodes are `menger node` processes on loopback, without TLS, each at an address of its own; the driver brings no CPUs, and is at the
head's. `latency`: a call to a worker that sleeps, on
another node, beside an echo of a bare socket and such a call on one machine. `pauses`: a call from Python every few milliseconds,
when the worker has gone back to its node; beside Ray. `calls`: empty ones over 1 to 8 nodes. `bytes`: values
that another node has or wants, beside iperf3 (Debian's package) if it is there. `broadcast`: 100 MB to 64 workers of 8 nodes.
`locality`: what it wins that calls go to where their arguments lie. `many`: what 8 to 64 nodes take until all are up, and idle.
`rows`: `ray microbenchmark` on two nodes of one CPU.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import measure

STORE_BYTES = 10**9
PATIENCE_S = 30


class Cluster:
    """`menger node` processes of this machine, node i with the resource n<i>; the environment names the head meanwhile.

    Each has an address of its own, as if it were on a machine of its own, unless they are `beside` each other.
    """

    def __init__(self, nodes, cpus, store_bytes=STORE_BYTES, beside=False):
        self.cpus, self.store_bytes, self.beside, self.processes = cpus, store_bytes, beside, {}
        try:
            self.address = self.start(1, "--head", "--listen", "127.0.0.1:0")
            if not self.address:
                raise measure.Failed("`menger node --head` has not begun; `make` builds it")
            os.environ["MENGER_ADDRESS"] = self.address
            for number in range(2, nodes + 1):
                self.join(number)
            self.wait_for(nodes)
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def start(self, number, *arguments):
        command = [measure.BUILD / "menger", "node", *arguments, "--cpus", self.cpus, "--resources", f"n{number}=1000",
                   "--store-bytes", self.store_bytes]  # fmt: skip
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.processes[number] = process
        return process.stdout.readline().strip()

    def join(self, number):
        self.start(number, "--join", self.address, "--listen", f"127.0.0.{1 if self.beside else number}:0")

    def kill(self, number):
        process = self.processes.pop(number)
        process.kill()
        process.wait()

    def wait_for(self, nodes):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            command = [str(measure.BUILD / "menger"), "node", "list", self.address]
            if subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.count(" up ") >= nodes:
                return
            time.sleep(0.1)
        raise measure.Failed(f"{nodes} nodes were not there within {PATIENCE_S} s")

    def mebibytes(self):
        """That each node holds, its workers not included."""
        held = {}
        for number, process in self.processes.items():
            with open(f"/proc/{process.pid}/statm") as file:
                held[number] = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        return held

    def cpu_seconds(self):
        spent = 0
        for process in self.processes.values():
            with open(f"/proc/{process.pid}/stat") as file:
                user, system = file.read().rpartition(")")[2].split()[11:13]
            spent += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return spent

    def end(self):
        os.environ.pop("MENGER_ADDRESS", None)
        for _, process in sorted(self.processes.items(), reverse=True):
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def ours(part, options, nodes, cpus, beside=False):
    with Cluster(nodes, cpus, beside=beside):
        command = [measure.BUILD / "bench" / "bench_runtime_nodes", "--part", part, "--nodes", nodes, "--workers", cpus]
        return measure.run([*command, "--seconds", options.seconds], limit_s=300).results


def show(header, rows):
    print("\n" + measure.table(header, rows), flush=True)


def latency(options):
    rows = [ours("latency", options, nodes=2, cpus=1)[0] for _ in range(3)]
    show(["echo of a bare socket, p50, us", "call on one machine", "call on another node", "/ (echo + call on one machine)"],
         [[row["echo_us"], row["here_us"], row["there_us"], measure.ratio(row["there_us"], row["echo_us"] + row["here_us"])]
          for row in rows])  # fmt: skip


def pauses(options):
    def show_time(row):
        return f"{row['median_us']} ({row['p90_us']})" if row else "-"

    table = []
    for nodes in (2, 8):
        for pause_ms in (2, 20, 200):
            arguments = ["--nodes", nodes, "--pause-ms", pause_ms, "--calls", max(20, round(4000 / pause_ms * options.seconds))]
            with Cluster(nodes, cpus=1):
                script = [sys.executable, measure.PEERS / "pauses.py", "--package", "menger.runtime", *arguments]
                mine = measure.run(script, limit_s=300).results[0]
            ray = {}
            if nodes == 2 and not options.without_ray:
                ray = measure.peer("ray", "pauses.py", arguments, 300).results[0]
            table.append([nodes, pause_ms, show_time(mine), show_time(ray),
                          measure.ratio(ray.get("median_us"), mine["median_us"])])  # fmt: skip
    show(["nodes of 1 CPU", "a call every so many ms", "Menger, us: p50 (p90)", "Ray", "Ray / Menger"], table)


def calls(options):
    rows = [ours("calls", options, nodes, cpus=1)[0] for nodes in (1, 2, 4, 8)]
    show(["nodes of 1 CPU", "empty calls a second"], [[row["nodes"], measure.rate(row)] for row in rows])


def gigabytes(options):
    bare = iperf(options)
    ways = [("another machine", False), ("the same machine", True)]
    rows = [(way, row) for way, beside in ways for row in ours("bytes", options, nodes=2, cpus=2, beside=beside)]
    show(["from", "bytes", "had by the driver, GB/s", "by another node's worker", "iperf3 -P1", "driver / iperf3"],
         [[way, measure.short(row["bytes"]), row["get_gb_s"], row["take_gb_s"], bare or "-",
           measure.ratio(row["get_gb_s"], bare)] for way, row in rows])  # fmt: skip


def iperf(options):
    """GB/s of one stream over loopback; None without iperf3."""
    program = shutil.which("iperf3")
    if program is None:
        return None
    server = subprocess.Popen([program, "-s", "-1", "-p", "5301"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        client = subprocess.run([program, "-c", "127.0.0.1", "-p", "5301", "-P1", "-J", "-t", str(max(1, round(options.seconds)))],
                                stdout=subprocess.PIPE, text=True, timeout=60)  # fmt: skip
        return round(json.loads(client.stdout)["end"]["sum_received"]["bits_per_second"] / 8e9, 2)
    finally:
        server.kill()


def broadcast(options):
    row = ours("broadcast", options, nodes=8, cpus=8)[0]
    show(["100 MB to so many workers", "on so many nodes", "s", "over the owner's link, times"],
         [[row["readers"], row["nodes"], row["seconds"], row["times_sent"]]])  # fmt: skip


def locality(options):
    rows = ours("locality", options, nodes=2, cpus=2)
    show(["bytes of the argument", "where it may go to it, ms", "on the other node, ms", "other / own"],
         [[measure.short(row["bytes"]), row["aware_ms"], row["elsewhere_ms"], measure.ratio(row["elsewhere_ms"], row["aware_ms"])]
          for row in rows])  # fmt: skip


def many(options):
    table = []
    for nodes in (8, 16, 32, 64):
        begin = time.monotonic()
        with Cluster(nodes, cpus=1, store_bytes=10**8) as cluster:
            up, joined = time.monotonic() - begin, cluster.cpu_seconds()
            time.sleep(2)
            before, window = cluster.cpu_seconds(), 10 * options.seconds
            time.sleep(window)
            idle = (cluster.cpu_seconds() - before) / window
            table.append([nodes, f"{up:.2f}", f"{joined:.2f}", f"{100 * idle:.1f}%", f"{100 * idle / nodes:.2f}%",
                          round(max(cluster.mebibytes().values()))])  # fmt: skip
    show(["nodes", "all are up after, s", "CPU by then, s", "of a CPU by all, idle", "by each", "the largest, MiB"], table)


def rows(options):
    picked = ["--rows", *options.rows] if options.rows else []
    with Cluster(nodes=2, cpus=1):
        mine = measure.run([measure.BUILD / "bench" / "bench_runtime_calls", *picked, "--seconds", options.seconds], 900).results
    peer = {}
    if not options.without_ray:
        arguments = [*picked, "--nodes", 2, "--cpus", 1, "--store-bytes", STORE_BYTES]
        try:
            peer = {row["name"]: row for row in measure.peer("ray", "ray_microbenchmark.py", arguments, 1800).results}
        except measure.Failed as error:
            measure.note(f"left out: {error}")
    table = []
    for row in mine:
        other = peer.get(row["name"], {"per_second": None, "deviation": 0})
        table.append([row["name"] + (" *" if row["note"] else ""), measure.rate(row), measure.rate(other),
                      measure.ratio(row["per_second"], other["per_second"]), row["other"]])  # fmt: skip
    show(["a second", "Menger", "Ray", "Menger / Ray", "other"], table)


PARTS = {"latency": latency, "pauses": pauses, "calls": calls, "bytes": gigabytes, "broadcast": broadcast, "locality": locality, "many": many, "rows": rows}


def main():
    parser = measure.parts_parser(__doc__, PARTS)
    parser.add_argument("--rows", nargs="*", default=[], help="of rows: only those whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each window of a measurement")
    parser.add_argument("--without-ray", action="store_true")
    return measure.run_parts(PARTS, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
