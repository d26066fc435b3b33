"""What the benchmarks that run beside peers share: running a command and seeing how quiet the machine was, medians, tables.

Standard library alone, so any Python 3.11 runs it. Every measured program prints lines "RESULT " + one JSON object.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MENGER_BUILD", ROOT / "build" / "release"))
PEERS = pathlib.Path(__file__).resolve().parent / "peers"


# `timeout` ends us with SIGTERM: then as an exception, so that run() ends what it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Failed(Exception):
    """A measured command that could not be run, failed or took too long; the text says what to do."""


class Run:
    """One finished command: its output, its wall time, and the share of a CPU that everything else on the machine used."""

    def __init__(self, output, wall, other):
        self.output, self.wall, self.other = output, wall, other
        self.results = [json.loads(line[7:]) | {"wall": round(wall, 2), "other": round(other, 2)}
                        for line in output.splitlines() if line.startswith("RESULT ")]  # fmt: skip


def busy_seconds():
    """CPU seconds that the whole machine has worked since it started."""
    with open("/proc/stat") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # Without idle and waiting for disks.


def run(command, limit_s, cwd=ROOT):
    """Runs a command in its own process group; ends it, and all it started, at the limit."""
    command = [str(part) for part in command]
    if not os.access(command[0], os.X_OK):
        raise Failed(f"{command[0]} is not there: `make bench-all` builds it, bench/peers/setup.sh PEER sets a peer up")
    busy, start = busy_seconds(), time.perf_counter()
    own = os.times()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)  # fmt: skip
    try:
        output, errors = process.communicate(timeout=limit_s)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failed(f"{shown(command)} had not ended after {limit_s:.0f} s") from None
        raise
    wall = time.perf_counter() - start
    used = sum(os.times()[:4]) - sum(own[:4])  # Ours and that of children that have ended.
    if process.returncode != 0:
        last = (errors.strip() or output.strip()).splitlines()[-3:]
        raise Failed(f"{shown(command)} ended with {process.returncode}: " + " / ".join(last))
    finished = Run(output, wall, max(0.0, busy_seconds() - busy - used) / wall)
    for result in finished.results:
        record(result)
    return finished


def record(result):
    """Appends a result to the file that MENGER_BENCH_LOG names, if it does, so that a run cut short leaves what it had."""
    if "MENGER_BENCH_LOG" in os.environ:
        with open(os.environ["MENGER_BENCH_LOG"], "a") as file:
            file.write(json.dumps(result) + "\n")


def shown(command):
    return " ".join(pathlib.Path(part).name if part.startswith("/") else part for part in command)


def peer(name, script, arguments, limit_s):
    """Runs bench/peers/SCRIPT in the environment of a peer, made first if it is not there or its requirements have changed."""
    made = subprocess.run([PEERS / "setup.sh", name], stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Failed(f"bench/peers/setup.sh {name} failed: {made.stderr.strip()[-300:]}")
    python = ROOT / ".peers" / name / "bin" / "python"
    return run([python, PEERS / script, *arguments], limit_s)


def spread(values, digits=0):
    """'median (lowest to highest)'; one value stands alone."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    text = f"{statistics.median(values):,.{digits}f}"
    return text if len(values) == 1 else f"{text} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def short(value):
    """184k, 1.57M: three figures."""
    if value is None:
        return "-"
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            number = value / limit
            return f"{number:.0f}{unit}" if number >= 100 else f"{number:.3g}{unit}"
    return f"{value:.3g}"


def ratio(one, other):
    return "-" if not one or not other else f"{one / other:.2f}x" if one / other < 10 else f"{one / other:.0f}x"


def table(header, rows):
    """A Markdown table."""
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join(' --- ' for _ in header)}|"]
    return "\n".join(lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows])


def rate(row):
    """'184k +- 2k' of a result with per_second and deviation."""
    return "-" if row["per_second"] is None else f"{short(row['per_second'])} +- {short(row['deviation'])}"


def parts_parser(description, parts):
    """Of a benchmark whose parts can be picked; the caller adds options of its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", choices=list(parts), default=list(parts))
    return parser


def run_parts(parts, options):
    """Runs those that were picked, each with the options; the exit status: 1 if one could not be measured."""
    print(f"{os.cpu_count()} CPUs; load before the start {os.getloadavg()[0]:.2f}")
    failures = 0
    for part in options.parts:
        note(part)
        try:
            parts[part](options)
        except Failed as error:
            note(f"left out: {error}")
            failures += 1
    return 1 if failures else 0


def note(text):
    """Progress, on standard error: standard output is for tables alone."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)
