#!/usr/bin/env python3
"""The runtime over a network that is slow, loses packets, breaks in parts or takes its Redis away: hosts are network namespaces.

    bench/runtime_network.py [--parts slow near loss partition redis chaos] [--scenarios TEXT...] [--seconds S] [--seed N] [--keep]

Needs root, iproute2, nftables, openssl, redis-server and redis-sentinel. Each host is a network namespace on a bridge in one of its own;
`tc tbf` limits bandwidth, nftables drop packets. Each node is a `menger node` of one CPU, with a token, TLS by a throw-away authority
and a cache of its own; the driver has a host of its own and brings no CPU. `slow`: 20 MB over the owner's link of 100 Mbit/s to readers
on 4 nodes, and small calls meanwhile. `near`: calls of 50 ms that each read a value of 5 MB, of which two thirds lie on one node; all links 100 Mbit/s.
`loss`: calls while 0, 1 and 5% of all packets are lost. `partition`: hosts that do not hear each
other, both or one of them, for less and for more than a lease. `redis`: the head keeps its state in a Redis with a replica and a
sentinel; primary and head die or are cut off. `chaos`: all of that at random for --seconds. What programs get is checked by
bench/runtime_programs/network.py, exactly. Prints Markdown tables; with --keep the logs stay.
"""

import random
import sys
import time

import measure
from network_hosts import NODES, PATIENCE_S, Cluster, Driver, Network, Redis

LINK_MBIT = 100


def show(header, rows):
    print("\n" + measure.table(header, rows), flush=True)


def hosts(*more):
    return ["driver", *(f"node{number}" for number in range(1, NODES + 1)), *more]


# ---- slow


def slow(options):
    size = 20_000_000
    arguments = ("broadcast", "--nodes", NODES, "--bytes", size)
    with Network(hosts()) as network, Cluster(network) as cluster, Driver(cluster, *arguments) as driver:
        driver.await_line("begun", PATIENCE_S)
        network.limit("driver", LINK_MBIT)
        before = network.bytes_sent("driver")
        driver.say()
        first = driver.result(60)
        sent = network.bytes_sent("driver") - before
        driver.say()
        second = driver.result(120)
    bare = size * 8 / (LINK_MBIT * 1e6)
    last = max(first["seconds"])
    show([f"{size // 10**6} MB to {NODES} nodes over the owner's {LINK_MBIT} Mbit/s", "over its link, times",
          "one transfer at the link's rate, s", "first reader, s", "last reader, s", "last / one transfer"],
         [["all right", f"{sent / size:.2f}", f"{bare:.2f}", f"{min(first['seconds']):.2f}", f"{last:.2f}",
           measure.ratio(last, bare)]])  # fmt: skip
    show(["calls of an actor, one by one", "calls", "p50, ms", "p99, ms", "longest, ms"],
         [[name, row["calls"], *(f"{row[key]:.2f}" for key in ("p50_ms", "p99_ms", "max_ms"))]
          for name, row in (("nothing else, link not limited", first["idle"]),
                            (f"meanwhile 2 values of 20 MB go to 2 nodes each, {LINK_MBIT} Mbit/s", second["meanwhile"]))])  # fmt: skip


# ---- near


def near(options):
    nodes = hosts()[1:]
    with Network(hosts()) as network, Cluster(network) as cluster:
        for host in nodes:
            network.limit(host, LINK_MBIT)
        before = sum(map(network.bytes_sent, nodes))
        with Driver(cluster, "near", "--nodes", NODES, "--bytes", 5_000_000) as driver:
            result = driver.result()
        sent = sum(map(network.bytes_sent, nodes)) - before
    first, *later = result["seconds"]
    show([f"{4 * NODES} calls of 50 ms, 5 MB each, {LINK_MBIT} Mbit/s", "first round, s", "later, s", "over links, of the bytes read"],
         [["all right", f"{first:.2f}", " ".join(f"{each:.2f}" for each in later), f"{sent / result['bytes']:.0%}"]])  # fmt: skip


# ---- loss


def loss(options):
    table = []
    for percent in (0, 1, 5):
        with Network(hosts()) as network, Cluster(network) as cluster:
            network.lose(percent)
            with Driver(cluster, "rates", "--seconds", "3") as driver:
                result = driver.result()
        row = [f"{percent}%", "yes"]
        for name in ("tasks", "actor calls", "actor calls one by one"):
            row += [measure.short(result[name]["per_second"]), f"{1e3 * result[name]['longest_s']:.0f}"]
        table.append(row)
    show(["packets lost", "all right", "tasks a second, 200 at once", "slowest 200, ms", "calls of an actor", "slowest 200, ms",
          "one by one", "slowest, ms"], table)  # fmt: skip


# ---- partition


def told(result):
    """What the program was told: each reason once, with the exceptions that gave it."""
    reasons = {}
    for text, (count, at) in result["errors"].items():
        _, kind, words = text.split(": ", 2)
        for before in ("failed: ", "is lost: "):
            words = words.partition(before)[2] or words
        reason = reasons.setdefault(words[:60], {"words": words, "count": 0, "at": at, "kinds": set()})
        reason["count"] += count
        reason["at"] = min(reason["at"], at)
        reason["kinds"].add(kind)
    said = [f"{each['count']}x {', '.join(sorted(each['kinds']))}: \"{each['words'][:130]}\" (from {each['at'] - result['begin']:.1f} s)"
            for each in reasons.values()]  # fmt: skip
    return "; ".join(said) or "nothing"


def verdict(result):
    done = sum(result["done"].values())
    return f"{done}, all right" if not result["wrong_count"] else f"{done}, WRONG: {result['wrong'][:3]}"


def longest(result, name="any"):
    seconds, at = result["gaps"].get(name, (0, result["begin"]))
    return f"{seconds:.1f} (from {at - result['begin']:.1f} s)"


LOAD = ["calls", "longest without any, s", "slowest task or chain, s", "slowest call of an actor, s", "lives of 4 actors",
        "nodes in use at the end", "the program was told"]  # fmt: skip


def load_row(result):
    slowest = result["slowest"]
    tasks = max(slowest.get(name, 0) for name in ("task", "chain", "put"))
    actors = max([each for name, each in slowest.items() if name not in ("task", "chain", "put")] or [0])
    return [verdict(result), longest(result), f"{tasks:.1f}", f"{actors:.1f}", sum(result["lives"].values()), result["used"], told(result)]


def under_load(cluster, happen, after_s=8):
    """The program's result, with what happens from its third second on; what does so may say more."""
    with Driver(cluster, "load") as driver:
        driver.await_line("begun", PATIENCE_S)
        time.sleep(3)
        said = happen()
        time.sleep(after_s)
        driver.say()
        return driver.result(), said


def scenarios():
    nodes = [f"node{number}" for number in range(1, NODES + 1)]

    def cut(hosts, others, seconds):
        def happen(network, cluster):
            network.cut(hosts, others)
            time.sleep(seconds)
            network.heal()
            return ended(cluster)

        return happen

    def deaf(host, to, seconds):
        def happen(network, cluster):
            network.deafen(host, [other for other in to or network.addresses if other != host])
            time.sleep(seconds)
            network.heal()
            return ended(cluster)

        return happen

    def ended(cluster):
        over = {}
        for number in range(1, NODES + 1):
            status = cluster.ended(number, 0)
            if status is not None:
                over[number] = status
                cluster.processes.pop(number)
                cluster.start(number)
        return over

    return {
        "a node from all, 3 s": cut(["node4"], None, 3),
        "a node from all, 25 s": cut(["node4"], None, 25),
        "a node from the driver, 15 s": cut(["node4"], ["driver"], 15),
        "a node from the driver, 45 s": cut(["node4"], ["driver"], 45),
        "the driver from the head, 5 s": cut(["driver"], ["node1"], 5),
        "the driver from the head, 25 s": cut(["driver"], ["node1"], 25),
        "a node hears nobody, 25 s": deaf("node4", None, 25),
        "the driver does not hear a node, 15 s": deaf("driver", ["node4"], 15),
        "two nodes each other, 15 s": cut(["node3"], ["node4"], 15),
        "the head from all, 5 s": cut(nodes[:1], None, 5),
    }  # fmt: skip


def picked(happenings, options):
    for name, happen in happenings.items():
        if not options.scenarios or any(text in name for text in options.scenarios):
            measure.note(name)
            yield name, happen


def partition(options):
    table = []
    for name, happen in picked(scenarios(), options):
        try:
            with Network(hosts()) as network, Cluster(network) as cluster:
                result, over = under_load(cluster, lambda: happen(network, cluster))
                words = ", ".join(f"node{number} ended with {status}" for number, status in over.items()) or "lived on"
            table.append([name, *load_row(result), words])
        except measure.Failed as error:
            table.append([name, f"FAILED: {error}"] + ["-"] * len(LOAD))
    show(["cut off from the 4th second on", *LOAD, "nodes"], table)


# ---- redis


def redis_happenings():
    def kill_primary(network, cluster, store):
        was = store.primary()
        store.kill(was)
        time.sleep(6)
        store.start_again(was)

    def cut_primary(network, cluster, store):
        network.cut([store.primary()])
        time.sleep(15)
        network.heal()

    def split(network, cluster, store):
        """The replica is promoted while the old primary goes on, for the head alone."""
        network.cut(["node1", store.primary()])
        time.sleep(4)
        network.heal()

    def hide_primary(network, cluster, store):
        was = store.primary()
        network.cut([was], [host for host in Redis.HOSTS if host != was])
        time.sleep(10)
        network.heal()

    def kill_head(network, cluster, store, for_s=2):
        cluster.kill(1)
        time.sleep(for_s)
        cluster.start(1)

    def kill_head_for_longer(network, cluster, store):
        kill_head(network, cluster, store, 6)

    def kill_head_twice(network, cluster, store):
        kill_head(network, cluster, store)
        time.sleep(4)
        kill_head(network, cluster, store)

    def kill_both(network, cluster, store):
        was = store.primary()
        store.kill(was)
        kill_head(network, cluster, store)
        time.sleep(4)
        store.start_again(was)

    return {
        "the primary is killed": kill_primary,
        "the primary is cut off for 15 s": cut_primary,
        "head and primary are cut off together for 4 s": split,
        "replica and sentinel do not hear the primary for 10 s": hide_primary,
        "the head is killed, begun again after 2 s": kill_head,
        "the head is killed, begun again after 6 s": kill_head_for_longer,
        "the head is killed twice, 4 s apart, begun again after 2 s": kill_head_twice,
        "primary and head are killed, the head is begun again after 2 s": kill_both,
    }


def redis(options):
    table = []
    for name, happen in picked(redis_happenings(), options):
        try:
            with Network(hosts(*Redis.HOSTS)) as network:
                store = Redis(network)
                with Cluster(network, store.store) as cluster:
                    result, _ = under_load(cluster, lambda: happen(network, cluster, store), after_s=15)
                    words = f"{cluster.up()} of {NODES} up"
            table.append([name, *load_row(result), words])
        except measure.Failed as error:
            table.append([name, f"FAILED: {error}"] + ["-"] * len(LOAD))
    show(["from the 4th second on", *LOAD, "nodes at the end"], table)


# ---- chaos


class Chaos:
    """Rounds of all that may happen, each in an order of its own."""

    ACTS = ("cut_short", "cut_long", "one_way", "lose", "slow", "kill_node", "kill_worker", "kill_worker", "kill_primary", "kill_head")

    def __init__(self, network, cluster, store, seed):
        self.network, self.cluster, self.store = network, cluster, store
        self.draw, self.counts, self.round = random.Random(seed), {}, []

    def node(self):
        return self.draw.randint(2, NODES)

    def act(self):
        if not self.round:
            self.round = self.draw.sample(self.ACTS, len(self.ACTS))
        name = self.round.pop()
        measure.note(name)
        self.counts[name] = self.counts.get(name, 0) + 1
        getattr(self, name)()
        self.network.heal()
        for number in range(1, NODES + 1):
            if self.cluster.ended(number, 0) is not None:
                self.counts["nodes that ended"] = self.counts.get("nodes that ended", 0) + 1
                measure.note(f"node{number} ended: {self.cluster.last_words(number)}")
                self.cluster.processes.pop(number)
                self.cluster.start(number)

    def cut_short(self):
        self.network.cut([f"node{self.node()}"])
        time.sleep(self.draw.uniform(0.5, 4))

    def cut_long(self):
        self.network.cut([f"node{self.node()}"])
        time.sleep(self.draw.uniform(12, 22))

    def one_way(self):
        hosts = list(self.network.addresses)
        host, other = self.draw.sample(hosts, 2)
        self.network.deafen(host, [other])
        time.sleep(self.draw.uniform(0.5, 3))

    def lose(self):
        self.network.lose(self.draw.choice([1, 3]))
        time.sleep(4)
        self.network.lose(0)

    def slow(self):
        host = f"node{self.node()}"
        self.network.limit(host, 20)
        time.sleep(4)
        self.network.limit(host, None)

    def kill_node(self):
        number = self.node()
        self.cluster.kill(number)
        time.sleep(self.draw.uniform(0, 2))
        self.cluster.start(number)

    def kill_worker(self):
        self.cluster.kill_worker(self.draw.randint(1, NODES))
        time.sleep(0.2)

    def kill_primary(self):
        was = self.store.primary()
        self.store.kill(was)
        time.sleep(5)
        self.store.start_again(was)
        time.sleep(2)

    def kill_head(self):
        self.cluster.kill(1)
        time.sleep(self.draw.uniform(0, 3))
        self.cluster.start(1)


def chaos(options):
    with Network(hosts(*Redis.HOSTS)) as network:
        store = Redis(network)
        with Cluster(network, store.store) as cluster, Driver(cluster, "load") as driver:
            driver.await_line("begun", PATIENCE_S)
            happening = Chaos(network, cluster, store, options.seed)
            end = time.monotonic() + options.seconds
            while time.monotonic() < end and driver.process.poll() is None:
                happening.act()
                time.sleep(happening.draw.uniform(0.5, 3))
            driver.say()
            result = driver.result()
            words = f"{cluster.up()} of {NODES} up"
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(happening.counts.items()))
    show(["s", "what happened", *LOAD, "nodes at the end"], [[options.seconds, counts, *load_row(result), words]])


PARTS = {"slow": slow, "near": near, "loss": loss, "partition": partition, "redis": redis, "chaos": chaos}


def main():
    parser = measure.parts_parser(__doc__, PARTS)
    parser.add_argument("--scenarios", nargs="*", default=[], help="of partition and redis: only those whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=120, help="of chaos")
    parser.add_argument("--seed", type=int, default=1, help="of chaos")
    parser.add_argument("--keep", action="store_true", help="the logs of nodes and program")
    options = parser.parse_args()
    Network.keep = options.keep
    return measure.run_parts(PARTS, options)


if __name__ == "__main__":
    sys.exit(main())
