#!/usr/bin/env python3
"""Replay that another process serves, beside replay of the own process and beside dm-reverb's server: one server, one client process.

    bench/replay_served.py [--parts throughput connections] [--seconds S] [--writers 16 2048] [--payloads ...]

  throughput    items a second at 400 B and 40 kB: inserted by one writer that is flushed every 256 items, sampled and gathered in batches
                of 256 from a uniform table, and through a queue of 1,024 by one writer and one reader at once
  connections   what an insert with its flush takes at 16 kB and 1 MB where 16 and where 2,048 writers are connected, at half the rate
                that 16 reach as fast as they can; 16 threads (dm-reverb: in four processes) step through all connections

All in turn on the same machine. Prints Markdown tables; makes .peers/reverb if needed. About five minutes.
"""

import argparse
import sys

import measure

PROGRAM = measure.BUILD / "bench" / "bench_replay_served"
REVERB = "dm-reverb, gRPC"


def attempt(title, call):
    measure.note(title)
    try:
        return call().results
    except measure.Failed as error:
        measure.note(f"left out: {error}")
        return []


def reverb(payload, seconds):
    """One row of dm-reverb, as ours are."""
    rows = {sampler: attempt(f"{payload}: {REVERB}, {sampler}", lambda: measure.peer(
        "reverb", "reverb_replay.py", [payload, sampler, "--seconds", seconds], 300)) for sampler in ("uniform", "queue")}  # fmt: skip
    found = {sampler: results[0] for sampler, results in rows.items() if results}
    if not found:
        return []
    uniform, queue = found.get("uniform", {}), found.get("queue", {})
    return [{"transport": REVERB, "inserts_per_second": uniform.get("inserts_per_second"),
             "samples_per_second": uniform.get("samples_per_second"), "queued_per_second": queue.get("samples_per_second"),
             "other": max(result["other"] for result in found.values())}]  # fmt: skip


def throughput(payloads, seconds):
    rows = []
    for payload in payloads:
        command = [PROGRAM, "--payloads", payload, "--seconds", seconds, "--json"]
        results = attempt(f"{payload}: Menger", lambda: measure.run(command, 600)) + reverb(payload, 4 * seconds)
        first = {field: {result["transport"]: result[field] for result in results}
                 for field in ("inserts_per_second", "samples_per_second", "queued_per_second")}  # fmt: skip
        for result in results:
            cells = [payload, result["transport"]]
            for field, rates in first.items():
                shared = rates.get("shared memory")
                beside = f" ({measure.ratio(shared, result[field])})" if result["transport"] != "shared memory" else ""
                cells.append(measure.short(result[field]) + beside)
            rows.append([*cells, result["other"]])
    print("\nItems a second; in brackets what shared memory is of it.\n")
    print(measure.table(["payload", "transport", "inserts/s", "samples/s", "through a queue/s", "other"], rows))


def connections(payloads, writers, seconds):
    rows = []
    for payload in payloads:
        command = [PROGRAM, "--payloads", payload, "--writers", *writers, "--seconds", seconds, "--json"]
        results = attempt(f"{payload}: Menger", lambda: measure.run(command, 600))
        arguments = [payload, "--writers", *writers, "--seconds", 2 * seconds]
        results += attempt(f"{payload}: {REVERB}", lambda: measure.peer("reverb", "reverb_connections.py", arguments, 600))
        first = {}
        for result in results:
            base = first.setdefault(result["transport"], result)
            rows.append([payload, result["transport"], result["writers"], result["rate"], result["reached"],
                         *(f"{result[field]:.0f} ({measure.ratio(result[field], base[field])})" for field in ("p50_us", "p99_us")),
                         result["other"]])  # fmt: skip
    print("\nMicroseconds of an insert with its flush; in brackets beside the fewest writers.\n")
    print(measure.table(["payload", "transport", "writers", "inserts/s wanted", "reached", "p50", "p99", "other"], rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=["throughput", "connections"], choices=["throughput", "connections"])
    parser.add_argument("--payloads", nargs="*", help="of what is measured, instead of those above")
    parser.add_argument("--writers", nargs="*", type=int, default=[16, 2048])
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement; a connection's takes four times that")
    options = parser.parse_args()
    if "throughput" in options.parts:
        throughput(options.payloads or ["400B", "40kB"], options.seconds)
    if "connections" in options.parts:
        connections(options.payloads or ["16kB", "1MB"], options.writers, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
