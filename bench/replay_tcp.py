#!/usr/bin/env python3
"""A replay server over TCP beside dm-reverb over localhost: items inserted and sampled a second by one client, uniform, batches of 256.

    bench/replay_tcp.py [--seconds 1] [--rounds 3] [--payloads 400B 40kB]

Taking turns, `rounds` times; medians (lowest to highest). Raw TCP, in the same run as ours, has the bytes of the sampled items and
nothing else: as a stream that never ends, and as answers to a question a batch. Prints a Markdown table; makes .peers/reverb if needed.
"""

import argparse
import statistics
import sys

import measure


def share(values, others):
    return f"{statistics.median(values) / statistics.median(others):.3g}x"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--payloads", nargs="*", default=["400B", "40kB"])
    options = parser.parse_args()
    rows = []
    for payload in options.payloads:
        ours, theirs = [], []
        for turn in range(options.rounds):
            measure.note(f"{payload}: turn {turn + 1} of {options.rounds}")
            command = [measure.BUILD / "bench" / "bench_replay_tcp", "--payloads", payload, "--seconds", options.seconds, "--json"]
            ours += measure.run(command, 300).results
            arguments = [payload, "uniform", "--seconds", 3 * options.seconds]
            theirs += measure.peer("reverb", "reverb_replay.py", arguments, 300).results

        def values(results, name):
            return [result[name] for result in results]

        for what in ("inserts", "samples"):
            name = f"{what}_per_second"
            of_raw = [measure.spread(values(ours, f"share_of_{raw}"), 2) if what == "samples" else "" for raw in ("raw", "asked")]
            rows.append([payload, what, measure.spread(values(ours, name)), measure.spread(values(theirs, name)),
                         share(values(ours, name), values(theirs, name)), *of_raw,
                         max(values(ours, "other") + values(theirs, "other"))])  # fmt: skip
    print(measure.table(["payload", "", "Menger, a second", "dm-reverb, a second", "", "of a raw stream", "of raw answers", "other"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
