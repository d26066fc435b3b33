#!/usr/bin/env python3
"""What a program of a cluster does while its network is disturbed; every value that it gets is compared with what it must be.

    MENGER_ADDRESS=HOST:PORT bench/runtime_programs/network.py broadcast | near | rates | load [options]

`broadcast`: one value to a reader on each node, and how long small calls of an actor take meanwhile. `near`: rounds of calls that each
read a value, most of which lie on one node. `rates`: tasks and calls of an actor a second. `load`: chains of tasks with values of 200 KB, small tasks, values that are put, and actors, until "stop" is read. Times
are those of the machine's monotonic clock, so who disturbs can say what came after it.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import sys
import threading
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import menger.runtime as ray  # noqa: E402

STEPS = 5
WORDS = 50_000  # 200 KB of a chain's values.
PUT_WORDS = 250_000
STUCK_S = 120  # Nothing that is under way ends in so long: it never will.
BIN_S = 0.1
WARM_S = 2.5


def clock():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@ray.remote
def square(i):
    time.sleep(0.005)
    return i * i + 1


@ray.remote
def grown(values, step):
    time.sleep(0.005)
    return values * np.uint32(3) + np.uint32(step)


@ray.remote
def summed(values):
    return int(values.sum(dtype=np.uint64))


@ray.remote
def made(seed, words):
    return values_of(seed, words)


@ray.remote
def read(values):
    time.sleep(0.05)
    return int(values.sum(dtype=np.uint64))


@ray.remote
def empty(i):
    return i


class Counter:
    """Says with each answer which life this is and which call of it."""

    def __init__(self):
        self.life, self.count = os.urandom(8).hex(), 0

    def ask(self, i):
        self.count += 1
        return self.life, self.count, 7 * i + 3

    def where(self):
        return ray.get_runtime_context().get_node_id()


def values_of(seed, words):
    return np.random.default_rng(seed).integers(0, 2**32, words, np.uint32)


class Asked:
    """An actor of the load: its calls are done in order, each once in a life, and none of a life is missing but those that failed."""

    def __init__(self, name, retries):
        options = {"max_restarts": -1, "max_task_retries": retries, "scheduling_strategy": "SPREAD"}
        self.name, self.actor = name, ray.remote(Counter).options(**options).remote()
        self.answers, self.failed, self.lives = {}, set(), 1
        self.asked = 0

    def call(self):
        self.asked += 1
        return self.asked, self.actor.ask.remote(self.asked)

    def wrong(self):
        found, life, last, lives = [], None, 0, set()
        allowed = 0
        for i in range(1, self.asked + 1):
            if i in self.failed:
                allowed += 1
                continue
            if i not in self.answers:
                found.append(f"{self.name}: call {i} was never answered")
                continue
            this, count, value = self.answers[i]
            if value != 7 * i + 3:
                found.append(f"{self.name}: call {i} gave {value}")
            if this != life:
                if this in lives:
                    found.append(f"{self.name}: call {i} came from a life that had ended")
                lives.add(this)
                life, last = this, 0
            if not last + 1 <= count <= last + 1 + allowed:
                found.append(f"{self.name}: call {i} was its life's call {count} after {last}, {allowed} failed between")
            last, allowed = count, 0
        self.lives = len(lives)
        return found


class Load:
    def __init__(self, options):
        self.options = options
        self.finished = collections.defaultdict(list)  # Times by kind.
        self.slowest = collections.defaultdict(float)
        self.errors = collections.defaultdict(lambda: [0, 0.0])
        self.wrong, self.underway, self.next = [], {}, 0
        self.stop, self.begin = threading.Event(), clock()
        self.actors = [Asked("retrying 1", -1), Asked("retrying 2", -1), Asked("once 1", 0), Asked("once 2", 0)]

    def start(self, kind):
        self.next += 1
        i = self.next
        if kind == "task":
            self.underway[square.remote(i)] = (kind, clock(), i * i + 1)
        elif kind == "chain":
            value = values_of(i, WORDS)
            ref = first = ray.put(value)
            for step in range(STEPS):
                ref = grown.remote(ref, step)
                value = value * np.uint32(3) + np.uint32(step)
            self.underway[ref] = (kind, clock(), value, first)  # A value that is put is kept by who refers to it alone.
        elif kind == "put":
            value = values_of(i, PUT_WORDS)
            self.underway[summed.remote(ray.put(value))] = (kind, clock(), int(value.sum(dtype=np.uint64)))
        else:
            number, ref = kind.call()
            self.underway[ref] = (kind, clock(), number)

    def end(self, ref):
        """On a thread of its own for values that another node may have still: `wait` does not bring them."""
        kind, since, expected, *_ = self.underway[ref]
        name = kind.name if isinstance(kind, Asked) else kind
        try:
            got = ray.get(ref)
        except Exception as error:
            if isinstance(kind, Asked):
                kind.failed.add(expected)
            text = f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:500]}"
            self.errors[text][0] += 1
            self.errors[text][1] = self.errors[text][1] or clock()
            time.sleep(0.05)
            return kind
        self.slowest[name] = max(self.slowest[name], clock() - since)
        self.finished[name].append(clock())
        if isinstance(kind, Asked):
            kind.answers[expected] = got
        elif not np.array_equal(got, expected):
            self.wrong.append(f"{name}: got {str(got)[:80]}, not {str(expected)[:80]}")
        return kind

    def run(self):
        for kind in ["task"] * 2 + ["chain"] * 3 + ["put"] + [actor for actor in self.actors for _ in range(2)]:
            self.start(kind)
        last, brought, bringing = clock(), {}, concurrent.futures.ThreadPoolExecutor(4)
        while self.underway:
            waited = [ref for ref in self.underway if ref not in brought]
            ready = ray.wait(waited, timeout=0.05)[0] if waited else []
            if ready and self.underway[ready[0]][0] == "chain":
                brought[ready[0]] = bringing.submit(self.end, ready[0])
                ready = []
            elif not waited:
                time.sleep(0.01)
            ready += [ref for ref, end in brought.items() if end.done()]
            for ref in ready:
                last = clock()
                kind = brought.pop(ref).result() if ref in brought else self.end(ref)
                del self.underway[ref]
                if not self.stop.is_set():
                    if isinstance(kind, Asked):
                        time.sleep(0.002)  # Calls of actors are to be a part of all, not most.
                    self.start(kind)
            if clock() - last > STUCK_S:
                kinds = collections.Counter(getattr(kind, "name", kind) for kind, *_ in self.underway.values())
                self.wrong.append(f"under way and not done after {STUCK_S} s: {dict(kinds)}")
                break
        bringing.shutdown(wait=False)
        for actor in self.actors:
            self.wrong += actor.wrong()
        everything = sorted(time for times in self.finished.values() for time in times)
        bins = collections.Counter(int((each - self.begin) / BIN_S) for each in everything)
        gaps = {}
        for name, times in [*self.finished.items(), ("any", everything)]:
            warm = self.begin + WARM_S  # Until then workers are started, and the program is brought to the nodes.
            ordered = [warm, *(each for each in sorted(times) if each > warm)]
            gap, at = max([(b - a, a) for a, b in zip(ordered, ordered[1:])] or [(0.0, warm)])
            gaps[name] = [round(gap, 3), round(at, 3)]
        return {"done": {name: len(times) for name, times in self.finished.items()}, "wrong": self.wrong[:20],
                "wrong_count": len(self.wrong), "errors": {text: pair for text, pair in self.errors.items()}, "gaps": gaps,
                "slowest": {name: round(each, 3) for name, each in self.slowest.items()}, "begin": self.begin, "end": clock(),
                "bins": [bins[i] for i in range(max(bins, default=-1) + 1)], "lives": {a.name: a.lives for a in self.actors}}  # fmt: skip


def used(nodes):
    """How many of them do a call that only they can do."""
    done = 0
    for number in range(1, nodes + 1):
        try:
            done += ray.get(empty.options(resources={f"n{number}": 0.1}).remote(number), timeout=20) == number
        except Exception as error:
            print(f"node {number} does no call: {error}", file=sys.stderr)
    return done


def load(options):
    running = Load(options)

    def listen():
        sys.stdin.readline()
        running.stop.set()

    threading.Thread(target=listen, daemon=True).start()
    print("begun", flush=True)
    return running.run() | {"used": used(options.nodes)}


def quantiles(seconds):
    ordered = sorted(seconds)
    return {"p50_ms": 1e3 * ordered[len(ordered) // 2], "p99_ms": 1e3 * ordered[int(len(ordered) * 0.99)],
            "max_ms": 1e3 * ordered[-1], "calls": len(ordered)}  # fmt: skip


def pinged(actor, until):
    seconds, i = [], 0
    while not until():
        i += 1
        begin = clock()
        _, _, value = ray.get(actor.ask.remote(i))
        seconds.append(clock() - begin)
        assert value == 7 * i + 3, (i, value)
        time.sleep(0.005)
    return quantiles(seconds)


def broadcast(options):
    readers = [summed.options(resources={f"n{i}": 1}) for i in range(1, options.nodes + 1)]
    actor = ray.remote(Counter).options(resources={"n1": 0.1}).remote()
    small = values_of(0, 10)
    assert ray.get([each.remote(small) for each in readers]) == [int(small.sum(dtype=np.uint64))] * options.nodes
    begin = clock()
    idle = pinged(actor, lambda: clock() - begin > 2)
    print("begun", flush=True)
    sys.stdin.readline()  # Whoever counts bytes has read the counters.
    value = values_of(1, options.bytes // 4)
    expected = int(value.sum(dtype=np.uint64))
    ref = ray.put(value)
    begin = clock()
    done = [each.remote(ref) for each in readers]
    seconds = []
    while done:
        ready, done = ray.wait(done, num_returns=1)
        assert ray.get(ready) == [expected]
        seconds.append(clock() - begin)
    print("RESULT", json.dumps({"seconds": seconds, "idle": idle}), flush=True)
    sys.stdin.readline()
    two = [ray.put(values_of(seed, options.bytes // 4)) for seed in (2, 3)]
    sums = [int(values_of(seed, options.bytes // 4).sum(dtype=np.uint64)) for seed in (2, 3)]
    done = [reader.remote(each) for each in two for reader in readers[1:3]]
    begin = clock()
    meanwhile = pinged(actor, lambda: len(ray.wait(done, num_returns=len(done), timeout=0)[0]) == len(done))
    assert ray.get(done) == [each for each in sums for _ in range(2)]
    return {"meanwhile": meanwhile, "two_seconds": clock() - begin}


def near(options):
    words, seconds = options.bytes // 4, []
    for turn in range(5):
        seeds = range(100 * turn, 100 * turn + 4 * options.nodes)
        lie_at = [1 if 3 * i < 2 * len(seeds) else 2 + i % (options.nodes - 1) for i in range(len(seeds))]
        values = [made.options(resources={f"n{node}": 0.01}).remote(seed, words) for seed, node in zip(seeds, lie_at)]
        assert len(ray.wait(values, num_returns=len(values), timeout=STUCK_S)[0]) == len(values)
        begin = clock()
        got = ray.get([read.remote(value) for value in values])
        seconds.append(clock() - begin)
        assert got == [int(values_of(seed, words).sum(dtype=np.uint64)) for seed in seeds]
    return {"seconds": seconds, "bytes": len(seconds) * len(seeds) * options.bytes}


def rates(options):
    actor = ray.remote(Counter).options(resources={"n2": 0.1}).remote()
    ray.get([empty.remote(i) for i in range(100)])
    ray.get(actor.ask.remote(0))
    result, number, asked = {}, 0, 0
    for name in ("tasks", "actor calls", "actor calls one by one"):
        begin, count, longest = clock(), 0, 0.0
        while clock() - begin < options.seconds:
            batch = 1 if name.endswith("one") else 200
            numbers = range(number, number + batch)
            number += batch
            since = clock()
            if name == "tasks":
                assert ray.get([empty.remote(i) for i in numbers]) == list(numbers)
            else:
                got = ray.get([actor.ask.remote(i) for i in numbers])
                assert [each[1:] for each in got] == [(asked + k + 2, 7 * i + 3) for k, i in enumerate(numbers)], got[:3]
                asked += batch
            longest = max(longest, clock() - since)
            count += batch
        result[name] = {"per_second": count / (clock() - begin), "longest_s": longest}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["broadcast", "near", "rates", "load"])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--bytes", type=int, default=20_000_000)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    ray.init("auto")
    result = {"broadcast": broadcast, "near": near, "rates": rates, "load": load}[options.what](options)
    begin = clock()
    ray.shutdown()
    print("RESULT", json.dumps(result | {"shutdown_s": round(clock() - begin, 2)}), flush=True)


if __name__ == "__main__":
    main()
