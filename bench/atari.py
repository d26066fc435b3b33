#!/usr/bin/env python3
"""Atari collection without a network: agent steps (4 frames) a second, beside EnvPool and ALE's vector environment.

    bench/atari.py [--seconds S] [--rounds N] [--games G...] [--environments N...] [--workers W...]

Prints a Markdown table: medians of the rounds, in which all take turns on the same machine, random actions, the same settings (no
sticky actions, no-ops, whole games, 84 x 84, single frames). A worker is a process of ours, a thread of theirs; besides, the
program that hands out actions runs in all of them. Makes .peers/envpool and .peers/ale if needed.
"""

import argparse
import statistics
import sys

import measure


def programs(game, environments, workers, seconds):
    arguments = ["--game", game, "--environments", environments, "--workers", workers, "--seconds", seconds]
    limit_s = 60 + 3 * seconds
    batch = max(1, environments // 2)
    return {
        "Menger": lambda: measure.run([measure.BUILD / "bench" / "bench_atari_steps", *arguments], limit_s),
        "EnvPool, sync": lambda: measure.peer("envpool", "envpool_atari.py", arguments, limit_s),
        "EnvPool, async": lambda: measure.peer("envpool", "envpool_atari.py", [*arguments, "--batch", batch], limit_s),
        "ALE's vector environment": lambda: measure.peer("ale", "ale_vector.py", arguments, limit_s),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--games", nargs="*", default=["Pong", "Breakout"])
    parser.add_argument("--environments", nargs="*", type=int, default=[8, 64])
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2])
    options = parser.parse_args()
    rows, others, failures, names = [], [], 0, []
    for game in options.games:
        for environments in options.environments:
            for workers in options.workers:
                rates = {}
                for round_ in range(options.rounds):
                    for name, program in programs(game, environments, workers, options.seconds).items():
                        measure.note(f"{game}, {environments} environments, {workers} workers, round {round_ + 1}: {name}")
                        try:
                            run = program()
                            rates.setdefault(name, []).append(run.results[0]["steps_per_second"])
                            others.append(run.other)
                        except measure.Failed as error:
                            measure.note(f"left out: {error}")
                            failures += 1
                names = list(programs(game, environments, workers, 0))
                medians = [statistics.median(rates[name]) if name in rates else None for name in names]
                pools = [median for median in medians[1:3] if median]
                peers = [median for median in medians[1:] if median]
                rows.append([game, environments, workers, *(measure.spread(rates.get(name, [None])) for name in names),
                             measure.ratio(medians[0], max(pools, default=None)),
                             measure.ratio(medians[0], max(peers, default=None))])  # fmt: skip
    print(measure.table(["game", "environments", "workers", *names, "Menger / best of EnvPool", "Menger / best of all"], rows))
    if others:
        print(f"\nOther load on the machine, in CPUs: median {statistics.median(others):.2f}, most {max(others):.2f}.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
