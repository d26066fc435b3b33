#!/usr/bin/env python3
"""The rows of `ray microbenchmark`, by short loops, with Ray or with menger.runtime.

    ray_core.py ray|menger.runtime [--seconds 2] [--rows TEXT]

--rows takes only those whose names hold the text. Each row: a line "RESULT " and a JSON object. What each operation does is what
Ray's own program does, with fewer calls a round; only placement groups, Ray's client and concurrent calls of one actor are
missing.
"""

import argparse
import importlib
import json
import os
import pathlib
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
    def batch(count):
        ray.get([small_value.remote() for _ in range(count)])
        return 0

    @ray.remote
    def put_small():
        for _ in range(100):
            ray.put(0)

    @ray.remote
    def put_large():
        for _ in range(10):
            ray.put(np.zeros(8 * MEGABYTE, np.uint8))

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
    yield "single client get calls", lambda: ray.get(value), 1
    yield "single client put calls", lambda: ray.put(0), 1
    yield "multi client put calls", lambda: ray.get([put_small.remote() for _ in range(10)]), 1000
    large = np.zeros(100 * MEGABYTE, np.uint8)
    yield "single client put gigabytes", lambda: ray.put(large), len(large) / 1e9
    yield "single client tasks and get batch", lambda: ray.get(batch.remote(1000)), 1
    yield "multi client put gigabytes", lambda: ray.get([put_large.remote() for _ in range(4)]), 4 * 80 * MEGABYTE / 1e9
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


def rate(do, per, seconds):
    """Operations a second, and the median of what one takes in microseconds; a quarter of the time is for warming up."""
    end = time.perf_counter() + seconds / 4
    while time.perf_counter() < end:
        do()
    taken, begin = [], time.perf_counter()
    while not taken or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        do()
        taken.append(time.perf_counter() - start)
    return len(taken) * per / (time.perf_counter() - begin), sorted(taken)[len(taken) // 2] / per * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", choices=["ray", "menger.runtime"])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row")
    parser.add_argument("--rows", default="", help="only those whose names hold this")
    options = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    begin = time.perf_counter()
    ray = importlib.import_module(options.package)
    ray.init(num_cpus=len(os.sched_getaffinity(0)), include_dashboard=False, log_to_driver=False)
    ray.get(ray.remote(lambda: 0).remote())
    start = time.perf_counter() - begin
    print("RESULT", json.dumps({"package": options.package, "row": "start", "seconds": round(start, 3)}), flush=True)
    for name, do, per in rows(ray):
        if options.rows in name:
            per_second, median = rate(do, per, options.seconds)
            result = {"package": options.package, "row": name, "per_second": round(per_second, 3), "median_us": round(median, 2)}
            print("RESULT", json.dumps(result), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
