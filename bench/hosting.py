#!/usr/bin/env python3
"""What it costs to host Python environments: steps a second through one host process, beside Gymnasium's vector environments.

    bench/hosting.py [--seconds S]

Prints a Markdown table: an environment that does nothing, and CartPole, 1, 8 and 64 of them. Each program has the machine to
itself while it runs. All use the interpreter of .venv (`make setup`).
"""

import argparse
import statistics
import sys

import measure

EXAMPLES = measure.ROOT / "src" / "menger" / "environments" / "hosted" / "testing"
ENVIRONMENTS = ["host_examples:Idle", "host:CartPole-v1"]
COLUMNS = [1, 8, 64]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    options = parser.parse_args()
    python = measure.ROOT / ".venv" / "bin" / "python"
    limit_s = 60 + 20 * options.seconds
    common = ["--seconds", options.seconds, "--path", EXAMPLES]
    rates, others = {}, []
    for name in ENVIRONMENTS:
        for columns in COLUMNS:
            ours = [measure.BUILD / "bench" / "bench_hosting", name, "--columns", columns, *common, "--python", python]
            peers = [python, measure.PEERS / "gymnasium_hosting.py", name, "--columns", columns, *common]
            for command in (ours, peers):
                measure.note(f"hosting: {name}, {columns}, {command[0].name}")
                run = measure.run(command, limit_s)
                others.append(run.other)
                for result in run.results:
                    rates[name, columns, result["peer"]] = result["steps_per_second"]
    rows = []
    for name in ENVIRONMENTS:
        for columns in COLUMNS:
            ours, sync, parallel = (rates.get((name, columns, peer)) for peer in ("menger", "SyncVectorEnv", "AsyncVectorEnv"))
            rows.append([name.split(":")[1], columns, *map(measure.short, (ours, sync, parallel)),
                         measure.ratio(ours, sync), measure.ratio(ours, parallel)])  # fmt: skip
    print(measure.table(["environment", "environments", "Menger, one host", "SyncVectorEnv", "AsyncVectorEnv", "Menger / Sync",
                         "Menger / Async"], rows))  # fmt: skip
    print(f"\nSteps a second. Other load on the machine, in CPUs: median {statistics.median(others):.2f}, most {max(others):.2f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
