#!/usr/bin/env python3
"""What the runtime pays for deaths: throughput while workers are killed and come back, and actors with and without checkpoints.

    bench/runtime_failures.py [--parts tasks actors] [--plots FOLDER]

Prints Markdown tables; writes runtime_failures_tasks.svg and runtime_failures_actors.svg to FOLDER (docs/images), drawn by
bench/peers/plot_failures.py in .peers/plots, which is made if needed. Every value is checked by the program that is measured,
bench_runtime_failures, which says what it does. Takes 100 seconds.
"""

import collections
import json
import pathlib
import statistics
import sys
import tempfile

import measure

PROGRAM = measure.BUILD / "bench" / "bench_runtime_failures"
BIN_S = 0.2
RETURNS = {"at once": 0, "after 2 s": 2}  # How workers come back: seconds that they need to start.
NEVER = 65535  # The most that checkpoint_every can be: more calls than any actor does here.
CHECKPOINTS = {
    "no checkpoints, the program starts its actors again": 0,
    "no checkpoints, the runtime runs all calls again": NEVER,
    "a checkpoint every 10 calls": 10,
}


def measured(*arguments):
    """The results of the program, and the events of its timeline."""
    with tempfile.TemporaryDirectory() as folder:
        timeline = pathlib.Path(folder) / "timeline.json"
        run = measure.run([PROGRAM, *arguments, "--timeline", timeline], limit_s=120)
        return run.results, json.loads(timeline.read_text())["traceEvents"]


def series(name, events, again):
    """By bins: calls that ended a second, and those of them that had been begun before, for which again(event) holds; and the deaths."""
    ended = sorted((e for e in events if e.get("cat") == "task_ended" and e["name"].startswith(("link", "step"))),
                   key=lambda event: event["ts"])  # fmt: skip
    begin = ended[0]["ts"]

    def second(event):
        return (event["ts"] + event.get("dur", 0) - begin) / 1e6

    bins = int(second(ended[-1]) / BIN_S)  # The last one is not whole.
    every, further = ([0] * bins for _ in range(2))
    for event in ended:
        place = int(second(event) / BIN_S)
        if place < bins:
            every[place] += 1 / BIN_S
            further[place] += again(event) / BIN_S
    deaths = [second(event) for event in events if event.get("cat") == "worker_died"]
    starts = [second(event) for event in events if event.get("cat") == "worker_started"]
    return {"name": name, "bin_s": BIN_S, "ended": every, "again": further, "deaths": deaths, "living": living(starts, deaths, bins)}


def living(starts, deaths, bins):
    """How many workers live, the mean of each bin."""

    def share(time, place):  # Of the bin, after that time.
        return min(1.0, max(0.0, place + 1 - time / BIN_S))

    return [round(sum(share(time, i) for time in starts) - sum(share(time, i) for time in deaths), 3) for i in range(bins)]


def tasks(options):
    rows, plots = [], []
    for returns, seconds in RETURNS.items():
        results, events = measured("tasks", "--start-seconds", seconds)
        quiet = results[0]["done"] / results[0]["seconds"]
        for phase in results:
            rate = phase["done"] / phase["seconds"]
            rows.append([returns, f"{phase['seconds']:.1f}", phase["killed"], phase["done"], f"{rate:.0f}", f"{rate / quiet:.2f}x",
                         phase["run_again"], phase["rebuilt"], phase["other"]])  # fmt: skip
        plots.append(series(f"workers come back {returns}", events, lambda event: event["args"]["attempt"] > 0))
    show(["workers come back", "s", "killed", "calls done", "a second", "/ undisturbed", "begun again", "values made again", "other"], rows)
    plot("tasks", plots, options)


def actors(options):
    rows, plots = [], []
    for name, every in CHECKPOINTS.items():
        (result,), events = measured("actors", "--checkpoint-every", every)
        seen = collections.Counter()

        def again(event, seen=seen):
            """Its own program's: by name; the runtime's: it is the same call."""
            seen[event["args"]["id"]] += 1
            return event["name"] == "step again" or seen[event["args"]["id"]] > 1

        plots.append(series(name, events, again) | {"living": None})
        made_again = round(sum(plots[-1]["again"]) * BIN_S)
        undisturbed = plots[-1]["ended"][3 : int(result["seconds"] / 3 / BIN_S) - 3]
        rows.append([name, result["actors"], result["lost"], made_again, f"{result['waited_seconds']:.2f}", result["calls"],
                     f"{statistics.mean(undisturbed):.0f}", result["other"]])  # fmt: skip
    show(["", "actors", "lost", "calls run again", "longest wait, s", "new calls", "a second, before", "other"], rows)
    plot("actors", plots, options)


def show(header, rows):
    print("\n" + measure.table(header, rows), flush=True)


def plot(what, plots, options):
    options.plots.mkdir(parents=True, exist_ok=True)
    file = options.plots / f"runtime_failures_{what}.svg"
    with tempfile.NamedTemporaryFile("w", suffix=".json") as data:
        json.dump(plots, data)
        data.flush()
        measure.peer("plots", "plot_failures.py", [data.name, file.resolve()], limit_s=120)
    measure.note(f"wrote {file}")


PARTS = {"tasks": tasks, "actors": actors}


def main():
    parser = measure.parts_parser(__doc__, PARTS)
    parser.add_argument("--plots", type=pathlib.Path, default=measure.ROOT / "docs" / "images")
    return measure.run_parts(PARTS, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
