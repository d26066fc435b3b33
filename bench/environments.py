#!/usr/bin/env python3
"""Benchmark a: environment steps a second on one core, native environments beside Gymnasium and EnvPool in the same run.

    bench/environments.py [--seconds S] [ENVIRONMENT...]

Prints Markdown tables: each native environment through the EnvironmentGroup interface against a plain loop over the same
simulators (the interface may take 1.25 times as long at most), then beside the peers. Uniform-random actions drawn
beforehand; every program has the machine to itself while it runs. Makes .peers/gymnasium and .peers/envpool if needed.
"""

import argparse
import statistics
import sys

import measure


def rate(results, environment, columns):
    rates = [row["steps_per_second"] for row in results
             if row["environment"] == environment and (columns is None or row["columns"] == columns)]  # fmt: skip
    return max(rates, default=None)


def print_tables(native, gymnasium, envpool):
    rows = [[row["environment"], row["columns"], measure.short(row["steps_per_second"]),
             measure.short(row["plain_steps_per_second"]), f"{row['ratio']:.2f}"] for row in native]  # fmt: skip
    print(measure.table(["environment", "columns", "steps/s, interface", "steps/s, plain loop",
                         "time, interface / plain"], rows))  # fmt: skip
    rows = []
    for name in dict.fromkeys(row["environment"] for row in native):
        one, many = rate(native, name, 1), rate(native, name, 64)
        loop, vector = rate(gymnasium, name, 1), rate(gymnasium, name, 64)
        pool = rate(envpool, name, None)
        rows.append([name, measure.short(one), measure.short(many), measure.short(loop), measure.short(vector),
                     measure.short(pool), measure.ratio(one, loop), measure.ratio(many, vector or loop),
                     measure.ratio(many, pool)])  # fmt: skip
    print()
    print(measure.table(["environment", "Menger, 1", "Menger, 64", "Gymnasium, 1", "Gymnasium NumPy vector, 64",
                         "EnvPool, best of 1, 64, 1024", "Menger / Gymnasium, 1", "Menger / Gymnasium, 64 (1 if no vector)",
                         "Menger 64 / EnvPool best"], rows), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", help="default: all native ones")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    options = parser.parse_args()
    limit_s = 60 + 60 * options.seconds
    arguments = ["--seconds", options.seconds, *options.environments]
    results, others, failures = {}, [], 0
    programs = {
        "native": lambda: measure.run([measure.BUILD / "bench" / "bench_environment_steps", "--json", *arguments], limit_s),
        "gymnasium": lambda: measure.peer("gymnasium", "gymnasium_steps.py", arguments, limit_s),
        "envpool": lambda: measure.peer("envpool", "envpool_steps.py", arguments, limit_s),
    }
    for name, program in programs.items():
        measure.note(f"environment steps: {name}")
        try:
            run = program()
            results[name] = run.results
            others.append(run.other)
        except measure.Failed as error:
            measure.note(f"left out: {error}")
            results[name] = []
            failures += 1
    print_tables(results["native"], results["gymnasium"], results["envpool"])
    if others:
        print(f"\nOther load on the machine, in CPUs: median {statistics.median(others):.2f}, most {max(others):.2f}.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
