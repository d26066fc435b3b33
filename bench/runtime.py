#!/usr/bin/env python3
"""The runtime beside Ray, in the same run: calls, actors and objects a second, what a call costs, start, a control loop.

    bench/runtime.py [--parts calls tasks objects start control] [--rows TEXT...] [--seconds S] [--without-ray]

`calls` is the list of `ray microbenchmark`, row by row (--rows picks), from C++ across processes with default options, without those
of Ray's client. Rows of coroutine actors are of our plain ones in C++, marked with a *. menger.runtime is the same from Python. All of it beside Ray takes 20 minutes. Prints Markdown tables; makes .peers/ray if needed.
"""

import pathlib
import statistics
import subprocess
import sys
import time

import measure

STARTS = 15
STARTS_OF_RAY = 3
BURN = "import os\nos.sched_setaffinity(0, [max(os.sched_getaffinity(0))])\nwhile True: pass"


def ours(program, *arguments, limit_s=600):
    return measure.run([measure.BUILD / "bench" / f"bench_runtime_{program}", *arguments], limit_s).results


def rays(script, *arguments, options, limit_s=1800):
    if options.without_ray:
        return []
    try:
        return measure.peer("ray", script, arguments, limit_s).results
    except measure.Failed as error:
        measure.note(f"left out: {error}")
        return []


def show(header, rows):
    print("\n" + measure.table(header, rows), flush=True)


def calls(options):
    rows = ["--rows", *options.rows] if options.rows else []
    mine = ours("calls", *rows, "--seconds", options.seconds)
    ours_in_python = python_calls(rows, options)
    peer = {row["name"]: row for row in rays("ray_microbenchmark.py", *rows, options=options)}
    table = []
    for row in mine:
        other = peer.pop(row["name"], {"per_second": None, "deviation": 0})
        python = ours_in_python.pop(row["name"], {"per_second": None})
        ratios = [measure.ratio(each["per_second"], other["per_second"]) for each in (row, python)]
        table.append([row["name"] + (" *" if row["note"] else ""), measure.rate(row), measure.rate(python), measure.rate(other), *ratios, row["other"]])
    table += [[row["name"], "none", "none", measure.rate(row), "-", "-", row["other"]] for row in peer.values()]
    show(["a second", "Menger", "menger.runtime", "Ray", "Menger / Ray", "menger.runtime / Ray", "other"], table)


def python_calls(rows, options):
    """The same rows from a Python program."""
    python, script = measure.ROOT / ".venv" / "bin" / "python", measure.ROOT / "bench" / "runtime_python.py"
    run = measure.run([python, script, *rows, "--seconds", options.seconds], limit_s=600)
    return {row["name"]: row for row in run.results}


def tasks(options):
    parts = ("rate", "latency", "soak", "idle")
    results = ours("tasks", "--parts", *parts, "--seconds", options.seconds)
    show(["empty calls", "a second"], [[row["isolation"], measure.rate(row)] for row in results if row["part"] == "rate"])
    show(["one call", "its peer is", "p50, us", "p99, us", "a bare wake and back, p50, us"],
         [[row["isolation"], row["peer"], row["p50_us"], row["p99_us"], row["wake_p50_us"]] for row in results if row["part"] == "latency"])  # fmt: skip
    show(["many calls", "how many", "a second", "MiB of the driver after each tenth"],
         [[row["isolation"], measure.short(row["calls"]), measure.short(row["per_second"]),
           " ".join(f"{each:.0f}" for each in row["driver_mib"])] for row in results if row["part"] == "soak"])  # fmt: skip
    show(["idle actors", "p50 of a call, us", "CPU of all processes when idle", "shared memory, MiB", "when idle"],
         [[row["actors"], row["p50_us"], f"{row['cpu_percent']:.2f}%", row["shared_mib"], row["shared_idle_mib"]]
          for row in results if row["part"] == "idle"])  # fmt: skip


def objects(options):
    results = ours("objects", "--seconds", options.seconds / 4)
    rates = ("put_per_second", "get_per_second", "pin_per_second", "fetch_per_second")
    show(["bytes", "put/s", "get/s", "pin/s", "call, put, get/s", "put, GB/s", "get, GB/s", "memcpy, GB/s", "put / memcpy"],
         [[measure.short(row["bytes"]), *(measure.short(row[rate]) for rate in rates), row["put_gb_s"], row["get_gb_s"],
           row["memcpy_gb_s"], f"{row['put_gb_s'] / row['memcpy_gb_s']:.2f}"] for row in results])  # fmt: skip


def start_once(command):
    """Milliseconds from exec to the first result and from the end of input to the process's; MiB of it and all that it started."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], cwd=measure.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    line = process.stdout.readline()
    first = time.perf_counter() - begin
    if line != "first result\n":
        process.kill()
        raise measure.Failed(f"{measure.shown([str(part) for part in command])} said {line!r}")
    memory = sum(pss(each) for each in family(process.pid)) / 2**10
    begin = time.perf_counter()
    process.stdin.close()
    process.wait(60)
    return {"first_ms": first * 1e3, "end_ms": (time.perf_counter() - begin) * 1e3, "mib": memory}


def family(process):
    """The process and all that descend from it."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [process]
    for each in found:
        found += children.get(each, [])
    return found


def pss(process):
    """KiB of a process, what it shares counted by its share."""
    try:
        lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def start(options):
    systems = {"Menger": ([measure.BUILD / "bench" / "bench_runtime_start"], STARTS)}
    python = measure.ROOT / ".peers" / "ray" / "bin" / "python"
    if not options.without_ray and python.exists():
        systems["Ray"] = ([python, measure.PEERS / "ray_start.py"], STARTS_OF_RAY)
    rows = []
    for name, (command, times) in systems.items():
        results = [start_once(command) for _ in range(times)]
        for result in results:
            measure.record({"part": "start", "system": name} | result)
        first, end, memory = ([result[key] for result in results] for key in ("first_ms", "end_ms", "mib"))
        rows.append([name, measure.spread(first, 1), measure.spread(end, 1), f"{statistics.median(memory):.0f}"])
    show(["", "exec to first result, ms", "end, ms", "memory of all processes, MiB"], rows)


def control(options):
    arguments = ["--seconds", 5 * options.seconds]
    rows = []
    for load in (False, True):
        burner = subprocess.Popen([sys.executable, "-c", BURN]) if load else None
        try:
            systems = {"Menger": ours("control", *arguments), "Ray": rays("ray_control.py", *arguments, options=options)}
        finally:
            if burner is not None:
                burner.kill()
                burner.wait()
        for name, results in systems.items():
            rows += [[name, "one core" if load else "none", row["tick_ms"], f"{100 * row['missed_share']:.3g}%",
                      measure.short(row["p50_us"]), measure.short(row["p99_us"]), measure.short(row["max_us"])]
                     for row in results]  # fmt: skip
    show(["", "load", "tick, ms", "deadlines missed", "p50, us", "p99, us", "most, us"], rows)


PARTS = {"calls": calls, "tasks": tasks, "objects": objects, "start": start, "control": control}


def main():
    parser = measure.parts_parser(__doc__, PARTS)
    parser.add_argument("--rows", nargs="*", default=[], help="of calls: only those whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each window of a measurement")
    parser.add_argument("--without-ray", action="store_true")
    return measure.run_parts(PARTS, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
