#!/usr/bin/env python3
"""MuJoCo's environments: steps a second with uniform-random actions, beside EnvPool, Gymnasium and bare libmujoco in one run.

    bench/mujoco.py [--seconds S] [ENVIRONMENT...]

8 environments a worker, 1 and 2 workers; of EnvPool the better of synchronous and asynchronous. Every program has the
machine to itself while it runs. Prints a Markdown table. Makes .peers/mujoco (Gymnasium) and .peers/envpool if needed.
"""

import argparse
import statistics
import sys

import measure


def best(results, peer, environment, workers):
    rates = [row["steps_per_second"] for row in results
             if (row["peer"], row["environment"], row["workers"]) == (peer, environment, workers)]  # fmt: skip
    return max(rates, default=None)


def print_table(results):
    rows = []
    for environment, workers in dict.fromkeys((row["environment"], row["workers"]) for row in results):
        ours, bare, pool, gymnasium = (best(results, peer, environment, workers)
                                       for peer in ("menger", "libmujoco", "envpool", "gymnasium"))  # fmt: skip
        share = [row["ratio"] for row in results
                 if (row["peer"], row["environment"], row["workers"]) == ("menger", environment, workers)]  # fmt: skip
        rows.append([environment, workers, *map(measure.short, (ours, bare, pool, gymnasium)),
                     f"{100 * share[0]:.0f}%" if share else "-", measure.ratio(ours, pool), measure.ratio(ours, gymnasium)])  # fmt: skip
    print(measure.table(["environment", "workers", "Menger", "bare libmujoco", "EnvPool", "Gymnasium", "Menger / libmujoco",
                         "Menger / EnvPool", "Menger / Gymnasium"], rows), flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", default=["HalfCheetah-v5", "Humanoid-v5"])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    options = parser.parse_args()
    limit_s = 60 + 16 * options.seconds
    arguments = [*options.environments, "--seconds", options.seconds]
    native = [*options.environments, "--seconds", 2 * options.seconds]  # Both sides take turns.
    programs = {
        "menger and libmujoco": lambda: measure.run([measure.BUILD / "bench" / "bench_mujoco", "--json", *native], limit_s),
        "envpool": lambda: measure.peer("envpool", "mujoco_steps.py", ["envpool", *arguments], limit_s),
        "gymnasium": lambda: measure.peer("mujoco", "mujoco_steps.py", ["gymnasium", *arguments], limit_s),
    }
    results, others, failures = [], [], 0
    for name, program in programs.items():
        measure.note(f"MuJoCo steps: {name}")
        try:
            run = program()
            results += run.results
            others.append(run.other)
        except measure.Failed as error:
            measure.note(f"left out: {error}")
            failures += 1
    print_table(results)
    if others:
        print(f"\nOther load on the machine, in CPUs: median {statistics.median(others):.2f}, most {max(others):.2f}.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
