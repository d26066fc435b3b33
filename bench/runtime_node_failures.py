#!/usr/bin/env python3
"""What deaths of nodes cost the runtime: throughput while nodes are killed and come back, actors with and without checkpoints.

    bench/runtime_node_failures.py [--parts chains actors chaos calls] [--seconds S]

Nodes are `menger node` processes on loopback. `chains`: calls on 4 nodes, 2 of which are killed and come back. `actors`: 200 on 10
nodes, 2 of which are killed, with a checkpoint every 10 calls and without any. `chaos`: chains for --seconds while all nodes but the
head are killed at random. `calls`: ten million, and what each process holds. Every value is checked by the program that is measured,
bench_runtime_node_failures. Prints Markdown tables.
"""

import random
import statistics
import sys
import threading
import time

import measure
from runtime_nodes import Cluster

PROGRAM = measure.BUILD / "bench" / "bench_runtime_node_failures"
BIN_S = 0.25
NEVER = 65535  # The most that checkpoint_every can be: the runtime runs all calls again.
KILLED_AFTER_S, BACK_AFTER_S, UNTIL_S = 4, 9, 16


def show(header, rows):
    print("\n" + measure.table(header, rows), flush=True)


def measured(cluster, nodes, arguments, happenings, limit_s):
    """What the program prints, with what happens to nodes meanwhile: (seconds, function)."""

    def happen():
        begin = time.monotonic()
        for after, what in happenings:
            time.sleep(max(0, begin + after - time.monotonic()))
            what()

    thread = threading.Thread(target=happen)
    thread.start()
    try:
        return measure.run([PROGRAM, *arguments], limit_s).results[0]
    finally:
        thread.join()


def mean(rates, begin_s, end_s):
    between = rates[int(begin_s / BIN_S) : int(end_s / BIN_S)]
    return f"{statistics.mean(between):.0f}" if between else "-"


def killed_and_back(nodes, cpus, back, *arguments):
    def kill():
        for number in (nodes - 1, nodes):
            cluster.kill(number)

    def begin_again():
        for number in (nodes - 1, nodes):
            cluster.join(number)

    with Cluster(nodes, cpus) as cluster:
        happenings = [(KILLED_AFTER_S, kill)] + [(BACK_AFTER_S, begin_again)] * back
        result = measured(cluster, nodes, [*arguments, "--seconds", UNTIL_S], happenings, limit_s=300)
    rates = result["per_second"]
    return [result["checked"], mean(rates, 1, KILLED_AFTER_S), mean(rates, KILLED_AFTER_S, KILLED_AFTER_S + 1),
            mean(rates, KILLED_AFTER_S + 1, BACK_AFTER_S), mean(rates, BACK_AFTER_S + 1, UNTIL_S), result["run_again"],
            result["rebuilt"]]  # fmt: skip


RATES = ["calls, all right", "a second before", "in the second after two nodes died", "then", "from 6 s after", "begun again",
         "values made again"]  # fmt: skip


def chains(_):
    show(["4 nodes of 2 CPUs, 2 killed, back after 5 s", *RATES], [["chains", *killed_and_back(4, 2, True, "chains")]])


def actors(_):
    rows = [[name, *killed_and_back(10, 30, False, "actors", "--checkpoint-every", every)]
            for name, every in (("a checkpoint every 10 calls", 10), ("no checkpoints: all calls again", NEVER))]  # fmt: skip
    show(["200 actors on 10 nodes, 2 killed", *RATES], rows)


def chaos(options):
    draw = random.Random(1)
    deaths = 0
    with Cluster(4, 2) as cluster:

        def kill_one():
            nonlocal deaths
            number = draw.choice((2, 3, 4))
            cluster.kill(number)
            time.sleep(draw.uniform(0, 1.5))
            cluster.join(number)
            deaths += 1

        happenings = [(at, kill_one) for at in range(2, round(options.seconds) - 3, 3)]
        result = measured(cluster, 4, ["chains", "--seconds", options.seconds], happenings, limit_s=options.seconds + 300)
    show(["s", "nodes killed", "calls, all right", "a second, mean", "begun again", "values made again"],
         [[options.seconds, deaths, result["checked"], f"{statistics.mean(result['per_second']):.0f}", result["run_again"],
           result["rebuilt"]]])  # fmt: skip


def calls(options):
    with Cluster(2, 1) as cluster:
        begin = cluster.mebibytes()
        result = measure.run([PROGRAM, "calls", "--calls", options.calls], limit_s=1200).results[0]
        end = cluster.mebibytes()
    show(["calls, all right", "a second", "MiB of the driver after each tenth", "MiB of the nodes before", "and after"],
         [[measure.short(result["checked"]), measure.short(result["calls_per_second"]),
           *(" ".join(f"{each:.0f}" for each in held) for held in (result["driver_mib"], begin.values(), end.values()))]])  # fmt: skip


PARTS = {"chains": chains, "actors": actors, "chaos": chaos, "calls": calls}


def main():
    parser = measure.parts_parser(__doc__, PARTS)
    parser.add_argument("--seconds", type=float, default=120, help="of chaos")
    parser.add_argument("--calls", type=int, default=10_000_000)
    return measure.run_parts(PARTS, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
