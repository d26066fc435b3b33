#!/usr/bin/env python3
"""What it costs to host Python environments: steps a second through one host process, beside Gymnasium's vector environments.

    bench/hosting.py [--seconds S] [--rounds N]

Prints a Markdown table: an environment that does nothing, and CartPole, 1, 8 and 64 of them. Each program has the machine to
itself while it runs; they take turns, and a ratio is the median of those of the rounds, since the machine's speed may change
from one minute to the next. All use the interpreter of .venv (`make setup`).
"""

import argparse
import collections
import itertools
import statistics
import sys

import measure

EXAMPLES = measure.ROOT / "src" / "menger" / "environments" / "hosted" / "testing"
ENVIRONMENTS = ["host_examples:Idle", "host:CartPole-v1"]
COLUMNS = [1, 8, 64]


def median_ratio(ours, theirs):
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    python = measure.ROOT / ".venv" / "bin" / "python"
    limit_s = 60 + 20 * options.seconds
    common = ["--seconds", options.seconds, "--path", EXAMPLES]
    rates, others = collections.defaultdict(list), []
    for name, columns in itertools.product(ENVIRONMENTS, COLUMNS):
        for _ in range(options.rounds):
            ours = [measure.BUILD / "bench" / "bench_hosting", name, "--columns", columns, *common, "--python", python]
            peers = [python, measure.PEERS / "gymnasium_hosting.py", name, "--columns", columns, *common]
            for command in (ours, peers):
                measure.note(f"hosting: {name}, {columns}, {command[0].name}")
                run = measure.run(command, limit_s)
                others.append(run.other)
                for result in run.results:
                    rates[name, columns, result["peer"]].append(result["steps_per_second"])
    rows = []
    for name, columns in itertools.product(ENVIRONMENTS, COLUMNS):
        ours, sync, parallel = (rates[name, columns, peer] for peer in ("menger", "SyncVectorEnv", "AsyncVectorEnv"))
        rows.append([name.split(":")[1], columns, *(measure.short(statistics.median(each)) for each in (ours, sync, parallel)),
                     median_ratio(ours, sync), median_ratio(ours, parallel)])  # fmt: skip
    print(measure.table(["environment", "environments", "Menger, one host", "SyncVectorEnv", "AsyncVectorEnv", "Menger / Sync",
                         "Menger / Async"], rows))  # fmt: skip
    print(f"\nSteps a second. Other load on the machine, in CPUs: median {statistics.median(others):.2f}, most {max(others):.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
