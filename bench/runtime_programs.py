#!/usr/bin/env python3
"""Whole Python programs on menger.runtime beside Ray, from the same source, in turn.

    bench/runtime_programs.py [--programs NAME...] [--pairs N] [--cpus N] [--package menger.runtime]

Each run is a process of its own, whose program warms up, is timed, and compares its result with what it must be. A ratio is the
median of those of the pairs, since the machine's speed may change from one minute to the next. Where bytes decide, the program
also does its work in one process, each value that would pass from one process to another copied by numpy: "bare". Makes
.peers/ray if needed. With --package each program runs once on that alone.
"""

import argparse
import statistics
import sys

import measure

PROGRAMS = measure.ROOT / "bench" / "runtime_programs"
NAMES = ("parameter_server", "map_reduce", "simulators", "serving", "nested_crashes")
LIMIT_S = 180


def once(name, package, options):
    measure.note(f"{name}: {package}")
    arguments = ["--package", package, "--cpus", options.cpus]
    if package == "ray":
        run = measure.peer("ray", PROGRAMS / f"{name}.py", arguments, LIMIT_S)
    else:
        run = measure.run([measure.ROOT / ".venv" / "bin" / "python", PROGRAMS / f"{name}.py", *arguments], LIMIT_S)
    (result,) = run.results
    return result


def ratios(one, other, digits=1):
    return measure.spread([a / b for a, b in zip(one, other, strict=True)], digits)


def pairs(name, options):
    """Rows of the two tables: beside Ray and, where bytes decide, beside the bare work."""
    runs = [(once(name, "menger.runtime", options), once(name, "ray", options)) for _ in range(options.pairs)]
    ours, theirs = zip(*runs, strict=True)
    seconds = [[each["seconds"] for each in side] for side in (ours, theirs)]
    others = [statistics.median(each["other"] for each in side) for side in (ours, theirs)]
    row = [name, *(measure.spread(each, 3) for each in seconds), ratios(seconds[1], seconds[0]), *others]
    if "bare_seconds" not in ours[0]:
        return row, []
    bare = []
    for system, side in (("Menger", ours), ("Ray", theirs)):
        done, whole, copies = ([each[key] for each in side] for key in ("seconds", "bare_seconds", "copy_seconds"))
        bare.append([name, system, f"{side[0]['bytes'] / 2**20:.0f}", measure.spread(whole, 3), measure.spread(copies, 3),
                     ratios(whole, done, 2), ratios(copies, done, 2)])  # fmt: skip
    return row, bare


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--cpus", type=int, default=2, help="that both are told to use")
    parser.add_argument("--package", choices=["ray", "menger.runtime"])
    options = parser.parse_args()
    if options.package:
        for name in options.programs:
            print(name, once(name, options.package, options))
        return
    more = []
    for i, name in enumerate(options.programs):  # A run that is cut short leaves the rows that it had.
        row, bare = pairs(name, options)
        lines = measure.table(["program", "Menger, s", "Ray, s", "Ray / Menger", "other", "other, Ray"], [row]).splitlines()
        print("\n".join(lines[2:] if i else lines), flush=True)
        more += bare
    print("\n" + measure.table(["program", "system", "MiB passed on", "bare, s", "copies alone, s", "bare / program",
                                "copies / program"], more))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
