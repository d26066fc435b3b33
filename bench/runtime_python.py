#!/usr/bin/env python3
"""The rows of `ray microbenchmark`, by short loops, from Python programs of menger.runtime.

    bench/runtime_python.py [--package menger.runtime] [--rows TEXT...] [--seconds S]

Each row: a line "RESULT " and a JSON object. What each operation does is what Ray's own program does, with fewer calls a round;
only Ray's client is missing. The program keeps to names that both have: --package ray runs it on Ray.
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

MEGABYTE = 2**20
CPUS = max(1, len(os.sched_getaffinity(0)) // 2)


def rows(ray):
    """(name, what is done, how many operations that is) one after the other; what a row needs is made for it alone."""

    @ray.remote
    def small_value():
        return b"ok"

    @ray.remote
    def put_small():
        for _ in range(100):
            ray.put(0)

    @ray.remote
    def put_large():
        for _ in range(10):
            ray.put(np.zeros(10 * MEGABYTE, np.int64))

    @ray.remote
    def references():
        return [ray.put(1) for _ in range(10_000)]

    @ray.remote
    def drive(actors, count):
        ray.get([actors[i % len(actors)].small_value.remote() for i in range(count)])

    @ray.remote(num_cpus=0)
    class Actor:
        def small_value(self):
            return b"ok"

        def small_value_argument(self, x):
            return b"ok"

        def batch(self, count):
            ray.get([small_value.remote() for _ in range(count)])

    @ray.remote(num_cpus=0)
    class AsyncActor:
        async def small_value(self):
            return b"ok"

        async def small_value_argument(self, x):
            return b"ok"

    @ray.remote(num_cpus=0)
    class Client:
        def __init__(self, servers):
            self.servers = servers

        def batch(self, count):
            ray.get([server.small_value.remote() for server in self.servers for _ in range(count)])

        def batch_argument(self, count):
            x = ray.put(0)
            ray.get([server.small_value_argument.remote(x) for server in self.servers for _ in range(count)])

    def made(kind, count):
        actors = [kind.remote() for _ in range(count)]
        ray.get([actor.small_value.remote() for actor in actors])
        return actors

    value = ray.put(0)
    yield "single client get calls (Plasma Store)", lambda: ray.get(value), 1
    yield "single client put calls (Plasma Store)", lambda: ray.put(0), 1
    yield "multi client put calls (Plasma Store)", lambda: ray.get([put_small.remote() for _ in range(10)]), 1000
    large = np.zeros(100 * MEGABYTE, np.int64)
    yield "single client put gigabytes", lambda: ray.put(large), 0.8
    yield "single client tasks and get batch", lambda: ray.get([small_value.remote() for _ in range(1000)]), 1
    yield "multi client put gigabytes", lambda: ray.get([put_large.remote() for _ in range(10)]), 8
    holder = references.remote()
    yield "single client get object containing 10k refs", lambda: ray.get(holder), 1

    def wait_for_each():
        pending = [small_value.remote() for _ in range(1000)]
        while pending:
            _, pending = ray.wait(pending)

    yield "single client wait 1k refs", wait_for_each, 1
    yield "single client tasks sync", lambda: ray.get(small_value.remote()), 1
    yield "single client tasks async", lambda: ray.get([small_value.remote() for _ in range(1000)]), 1000
    several = made(Actor, 2)
    yield "multi client tasks async", lambda: ray.get([each.batch.remote(1000) for each in several]), 2000
    for word, kind in (("actor", Actor), ("async-actor", AsyncActor)):
        (one,) = made(kind, 1)
        yield f"1:1 {word} calls sync", lambda one=one: ray.get(one.small_value.remote()), 1
        yield f"1:1 {word} calls async", lambda one=one: ray.get([one.small_value.remote() for _ in range(1000)]), 1000
        if kind is Actor:
            threads = Actor.options(max_concurrency=16).remote()
            yield (
                f"1:1 {word} calls concurrent",
                lambda threads=threads: ray.get([threads.small_value.remote() for _ in range(1000)]),
                1000,
            )
        if kind is AsyncActor:
            yield (
                f"1:1 {word} calls with args async",
                lambda one=one: ray.get([one.small_value_argument.remote(i) for i in range(1000)]),
                1000,
            )
        servers = made(kind, CPUS)
        client = Client.remote(servers)
        yield f"1:n {word} calls async", lambda client=client: ray.get(client.batch.remote(1000)), 1000 * len(servers)
        yield (
            f"n:n {word} calls async",
            lambda servers=servers: ray.get([drive.remote(servers, 1000) for _ in range(2)]),
            2000,
        )
        if kind is Actor:
            clients = [Client.remote([server]) for server in servers]
            yield (
                f"n:n {word} calls with arg async",
                lambda clients=clients: ray.get([each.batch_argument.remote(500) for each in clients]),
                500 * len(clients),
            )

    util = importlib.import_module(ray.__name__ + ".util")

    def groups():
        made = [util.placement_group([{"CPU": 0.001}]) for _ in range(100)]
        for group in made:
            group.wait(timeout_seconds=30)
        for group in made:
            util.remove_placement_group(group)

    yield "placement group create/removal", groups, 100


def measured(name, do, per, seconds):
    """Operations a second: mean and deviation of four parts, after one that is not counted."""
    rates = []
    for _ in range(5):
        count, begin = 0, time.perf_counter()
        while not count or time.perf_counter() - begin < seconds / 4:
            do()
            count += 1
        rates.append(count * per / (time.perf_counter() - begin))
    return {"name": name, "per_second": statistics.mean(rates[1:]), "deviation": statistics.stdev(rates[1:])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=["ray", "menger.runtime"], default="menger.runtime")
    parser.add_argument("--rows", nargs="*", default=[], help="only rows whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row")
    options = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    begin = time.perf_counter()
    ray = importlib.import_module(options.package)
    ray.init(num_cpus=len(os.sched_getaffinity(0)), include_dashboard=False, log_to_driver=False)
    ray.get(ray.remote(lambda: 0).remote())
    print("RESULT", json.dumps({"name": "start", "seconds": round(time.perf_counter() - begin, 3)}), flush=True)
    for name, do, per in rows(ray):
        if not options.rows or any(text in name for text in options.rows):
            print("RESULT", json.dumps(measured(name, do, per, options.seconds)), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
