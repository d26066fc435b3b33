#!/usr/bin/env python3
"""Where does each millisecond of both cores go, in a training run on an Atari game and in its collection, a network acting?

    bench/time_shares.py [--seconds S] [--recipe pong_ppo] [--set section.key=value ...]

Trains for a while and reads three sources over the same stretch of it, from one row of progress.csv to a later one: those rows
(collecting, learning, inference), /proc (the CPU time of menger and of its hosts, together and apart) and, where `perf` may look,
its samples of the hosts, by which their time is split between emulator and preprocessing. Prints a Markdown table; shares are of
the time of all cores together. While collecting, cores count as busy with the CPU time of the hosts and the time that inference
takes: what workers and hosts need to signal each other is waiting. The machine should have nothing else to do, or waiting for a
core counts as waiting, too.
"""

import argparse
import csv
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import measure

TICKS = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.02  # Between two looks at progress.csv.
START_SECONDS = 60  # How long the first row may take.
WARM_ROWS = 2  # Rows of the beginning that are left out.

# The functions of menger-atari-host that make a screen an observation. What else is not menger's is the emulator, and the rest
# (menger's loop, the kernel, the C library) hands over.
HOST = "menger-atari-host"
PREPROCESSING = re.compile(r"menger::(ScreenFilter|AreaWeights|ShrinkPixel)\b")


def stat_of(process):
    """(parent, CPU seconds) of a process; None once it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS


def descendants(root):
    parents = {int(path.name): stat_of(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")}
    found = [root]
    for process in found:
        found += [child for child, stat in parents.items() if stat is not None and stat[0] == process]
    return found[1:]


class Sample:
    """The CPU seconds of menger, of its hosts and of the whole machine, at a row of progress.csv."""

    def __init__(self, menger, rows):
        self.time, self.rows, self.machine = time.perf_counter(), rows, measure.busy_seconds()
        self.hosts = descendants(menger)
        self.menger_seconds = (stat_of(menger) or (0, 0))[1]
        self.host_seconds = sum((stat_of(host) or (0, 0))[1] for host in self.hosts)


def rows_of(path):
    """The whole rows of a table that is being written."""
    if not path.exists():
        return []
    text = path.read_text()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


def next_sample(process, path, beyond, deadline):
    """Waits for a row after `beyond` rows."""
    while process.poll() is None and time.perf_counter() < deadline:
        count = len(rows_of(path))
        if count > beyond:
            return Sample(process.pid, count)
        time.sleep(LOOK_SECONDS)
    raise measure.Failed(f"menger train wrote no row of {path.name}: " + (process.stderr.read()[-500:] if process.poll() else ""))


def start_perf(hosts, seconds, file):
    """perf on the hosts, or None where there is none or it may not look."""
    if shutil.which("perf") is None:
        return None
    command = ["perf", "record", "-e", "cpu-clock", "-F", "499", "-o", file, "-p", ",".join(map(str, hosts)),
               "--", "sleep", f"{seconds:.1f}"]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def host_parts(perf, file):
    """The shares (emulation, preprocessing) of the hosts' samples; None without samples."""
    if perf is None or perf.wait(timeout=60) != 0:
        return None
    report = subprocess.run(["perf", "report", "-i", file, "--stdio", "--no-children", "-F", "overhead,dso,sym"],
                            capture_output=True, text=True, timeout=120)  # fmt: skip
    shares = {"emulation": 0.0, "preprocessing": 0.0, "handing over": 0.0}
    for percent, object_file, symbol in re.findall(r"^\s*([\d.]+)%\s+(\S+)\s+\[.\]\s+(.+?)\s*$", report.stdout, re.MULTILINE):
        kind = "handing over"
        if object_file == HOST and not symbol.startswith("menger::"):
            kind = "emulation"
        elif PREPROCESSING.match(symbol):
            kind = "preprocessing"
        shares[kind] += float(percent)
    whole = sum(shares.values())
    return None if whole == 0 else (shares["emulation"] / whole, shares["preprocessing"] / whole)


def watch(options, folder):
    """Trains; returns the samples at both ends of the stretch, the rows between them, and the hosts' parts."""
    command = [str(measure.BUILD / "menger"), "--log", "error", "train", options.recipe, "--out", str(folder / "run")]
    settings = ["steps=1000000000", "evaluation.every=0", "checkpoint.every=0", "progress.every=1", *options.set]
    process = subprocess.Popen(command + [word for setting in settings for word in ("--set", setting)], cwd=measure.ROOT,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    path = folder / "run" / "progress.csv"
    try:
        start = next_sample(process, path, WARM_ROWS, time.perf_counter() + START_SECONDS)
        perf = start_perf(start.hosts, options.seconds, folder / "perf.data") if start.hosts else None
        time.sleep(options.seconds)
        seen = len(rows_of(path))
        end = next_sample(process, path, seen, time.perf_counter() + START_SECONDS + options.seconds)
        parts = host_parts(perf, folder / "perf.data")
        return start, end, rows_of(path)[start.rows : end.rows], parts
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()


def table(start, end, rows, parts, cores):
    def total(column):
        return sum(float(row[column]) for row in rows)

    wall = end.time - start.time
    collecting, learning, inference = (total(f"{name}_seconds") for name in ("collecting", "learning", "inference_thread"))
    hosts, menger = end.host_seconds - start.host_seconds, end.menger_seconds - start.menger_seconds
    emulation, preprocessing = parts or (1.0, 0.0)
    learning_cpu = min(max(0.0, menger - inference), cores * learning)  # What else menger does is next to nothing.
    elsewhere = max(0.0, wall - collecting - learning)

    lines = [
        ("emulation" if parts else "emulation and preprocessing (no perf)", emulation * hosts, True),
        *([("preprocessing (grey, brighter of two, resize)", preprocessing * hosts, True),
           ("hosts: handing over", (1 - emulation - preprocessing) * hosts, True)] if parts else []),
        ("inference", inference, True),
        ("waiting while collecting", max(0.0, cores * collecting - hosts - inference), True),
        ("learning", learning_cpu, False),
        ("waiting while learning", max(0.0, cores * learning - learning_cpu), False),
        ("between the two (publishing, tables)", cores * elsewhere, False),
    ]  # fmt: skip

    def share(seconds, whole):
        return f"{100 * seconds / (cores * whole):.1f}%"

    cells = [(name, share(seconds, wall), share(seconds, collecting) if collects else "") for name, seconds, collects in lines]
    cells.append(("**cores busy** (/proc)", share(hosts + menger, wall), share(hosts + inference, collecting)))
    steps = float(rows[-1]["steps"]) - float(rows[0]["steps"])  # Of all rows but the first.
    rate = steps / (len(rows) - 1) * len(rows) / wall if len(rows) > 1 else math.nan
    other = max(0.0, end.machine - start.machine - hosts - menger) / wall
    print(measure.table(["share of the time of all cores", "training", "collecting, a network acting"], cells))
    print(f"\n{wall:.1f} s on {cores} cores, {100 * collecting / wall:.0f}% of it collecting and {100 * learning / wall:.0f}% "
          f"learning; {rate:,.0f} steps a second; other processes: {other:.2f} CPUs.")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of the stretch that is looked at")
    parser.add_argument("--recipe", default="pong_ppo", help="one that plays an Atari game")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="as menger train takes it")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            table(*watch(options, pathlib.Path(folder)), cores=len(os.sched_getaffinity(0)))
    except measure.Failed as error:
        sys.exit(f"time_shares.py: {error}")


if __name__ == "__main__":
    main()
