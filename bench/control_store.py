#!/usr/bin/env python3
"""What it costs to keep a cluster's control state in a Redis, what its replica adds, and how long a fail-over takes.

    bench/control_store.py [--rounds 5] [--seconds 2]

Servers are processes of their own on loopback, which keep nothing on a disk: one alone, one with a replica, and one with a replica
and a sentinel that is killed meanwhile. Each round measures the first two in alternating order, and Redis by itself
(redis-benchmark, SET of as many bytes). Prints Markdown tables. Needs redis-server, redis-benchmark and `make bench-all`.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time

import measure

PROGRAM = measure.BUILD / "bench" / "bench_control_state"
ONE, MANY = "store with Redis, one at a time", "store with Redis, 256 at a time"
WAIT = ", longest wait"
KILLED_AFTER_S = 2
DOWN_AFTER_MS = 1000


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def server(*options, sentinel=None):
    """Its process and its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server"]
        if sentinel is not None:
            file = pathlib.Path(folder, "sentinel.conf")
            watched = (f"monitor cluster 127.0.0.1 {sentinel} 1", f"down-after-milliseconds cluster {DOWN_AFTER_MS}")
            file.write_text("".join(f"sentinel {line}\n" for line in watched))
            command += [file, "--sentinel"]
        else:
            command += ["--save", "", "--repl-diskless-sync-delay", "0"]
        command += ["--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            until(lambda: ask(port, "PING") is not None)
            yield process, port
        finally:
            process.kill()
            process.wait()


def ask(port, *words):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as stream:
        stream.sendall((" ".join(words) + "\r\n").encode())
        return stream.recv(65536).decode()
    return None


def until(is_so, seconds=20):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise measure.Failed("a Redis was not ready in time")
        time.sleep(0.02)


def rates(address, seconds):
    return json.loads(measure.run([PROGRAM, "--redis", address, "--seconds", seconds, "--json"], 60 + 4 * seconds).output)


def bare(port, seconds, pipelined):
    """SETs a second of Redis's own benchmark, one at a time or 256 on the way."""
    count = int((100_000 if pipelined else 15_000) * seconds)
    command = [shutil.which("redis-benchmark"), "-p", port, "-t", "set", "-d", "100", "-r", "1000", "-n", count, "--csv"]
    output = measure.run([*command, "-c", "1", "-P", "256" if pipelined else "1"], 120).output
    return float(next(line for line in output.splitlines() if line.startswith('"SET"')).split(",")[1].strip('"'))


def costs(rounds, seconds):
    measured = {"alone": [], "replicated": []}
    plain = {ONE: [], MANY: []}
    with server() as (_, alone), server() as (_, primary), server("--replicaof", f"127.0.0.1 {primary}"):
        until(lambda: "online" in ask(primary, "INFO", "replication"))
        ports = {"alone": alone, "replicated": primary}
        for number in range(rounds):
            for name in sorted(measured, reverse=number % 2 == 1):
                measured[name].append(rates(f"redis://127.0.0.1:{ports[name]}", seconds))
            plain[ONE].append(bare(alone, seconds, False))
            plain[MANY].append(bare(alone, seconds, True))
    rows = []
    for what in (ONE, MANY):
        alone, replicated = ([one[what] for one in measured[name]] for name in ("alone", "replicated"))
        cost = [1 - after / before for before, after in zip(alone, replicated)]
        rows.append((f"puts a second, {what.split(', ')[1]}", measure.spread(alone), measure.spread(replicated),
                     f"{100 * statistics.median(cost):.0f}% ({100 * min(cost):.0f} to {100 * max(cost):.0f})",
                     measure.spread(plain[what]), measure.ratio(statistics.median(alone), statistics.median(plain[what]))))  # fmt: skip
    header = ("", "one server", "with a replica", "the replica costs", "redis-benchmark, SET", "store : that")
    print(measure.table(header, rows), flush=True)


def fail_over():
    with server() as (process, primary), server("--replicaof", f"127.0.0.1 {primary}"), server(sentinel=primary) as (_, sentinel):
        until(lambda: "online" in ask(primary, "INFO", "replication"))
        until(lambda: "slaves=1" in ask(sentinel, "INFO", "sentinel"))
        killer = threading.Timer(KILLED_AFTER_S, process.kill)
        killer.start()
        return rates(f"redis-sentinel://127.0.0.1:{sentinel}#cluster", 3 * KILLED_AFTER_S)[ONE + WAIT]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    costs(arguments.rounds, arguments.seconds)
    waits = [fail_over() for _ in range(3)]
    print(f"\nThe primary is killed: {measure.spread(waits)} ms without a put that is safe, "
          f"of which the sentinel takes {DOWN_AFTER_MS} to believe it.")  # fmt: skip


if __name__ == "__main__":
    main()
