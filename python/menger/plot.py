"""Draws learning curves: what `menger plot` runs. Needs NumPy and matplotlib; has tools/setup.sh install them if missing.

One curve is one configuration: runs that differ in nothing but their seed are one, its line is their mean and its band reaches
from the smallest to the largest of them, where all of them have values. The left panel is over steps, the right one shows the same
points over the seconds of training after which the runs, on the average, had made those steps.
"""

import argparse
import csv
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

POINTS = 400  # Of a curve through several seeds.
ROOT = pathlib.Path(__file__).resolve().parents[2]
AXES = (("steps", "steps"), ("training_seconds", "seconds of training"))
INSTALLED = "MENGER_PLOT_INSTALLED"  # Set for the second start, after the installation.


class Refusal(Exception):
    """What the user must change."""


def find_runs(arguments):
    """The run folders that the arguments are or hold, in their order."""
    runs = []
    for argument in map(pathlib.Path, arguments):
        if not argument.is_dir():
            raise Refusal(f"there is no folder '{argument}'; `menger runs` lists runs")
        if (argument / "experiment.toml").exists():
            found = [argument]
        else:
            found = sorted((path.parent for path in argument.rglob("experiment.toml")), key=_by_number)
        if not found:
            raise Refusal(f"'{argument}' is not a run folder and holds none")
        runs += [run for run in found if run not in runs]
    return runs


def configuration(run):
    """What a run is, but for its seed, where it was told what, and how many threads do the work."""
    lines = []
    for line in (run / "experiment.toml").read_text().splitlines():
        setting = line.split("  # from ")[0].strip()
        if setting and not setting.startswith("#") and not re.match(r"(seed|learner_threads|workers) =", setting):
            lines.append(setting)
    return tuple(lines)


def has_ended(run):
    """Whether it will report nothing more unless somebody resumes it."""
    try:
        return json.loads((run / "summary.json").read_text()).get("status") == "completed"
    except (OSError, ValueError, AttributeError):
        return False


def group(runs):
    """(name, runs) of each configuration, in the order of the first of each."""
    groups = {}
    for run in runs:
        groups.setdefault(configuration(run), []).append(run)
    names = []
    for members in groups.values():
        parents = {run.parent for run in members}
        together = len(members) > 1 and len(parents) == 1 and all(run.name.startswith("seed-") for run in members)
        if together:
            name = parents.pop().name
        elif len(members) > 1:
            name = f"{'/'.join(members[0].parts[-2:])} and {len(members) - 1} more"
        else:
            name = members[0].name
        names.append(f"{name} ({len(members)} seeds)" if len(members) > 1 else name)
    return list(zip(names, groups.values()))


def read_curve(run, metric):
    """{axis: values} and the metric's values: the rows of progress.csv that have one."""
    path = run / "progress.csv"
    yet = "" if has_ended(run) else " yet"
    if not path.exists():
        raise Refusal(f"'{run}' has no progress.csv: it has not reported anything{yet}")
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if rows and metric not in rows[0]:
        raise Refusal(f"'{path}' has no column '{metric}'; there are: {', '.join(rows[0])}")
    rows = [row for row in rows if None not in row.values() and row[metric]]  # The last may be half written.
    if not rows:
        raise Refusal(f"'{path}' has no value of '{metric}'{yet}")
    return {axis: [float(row[axis]) for row in rows] for axis, _ in AXES}, [float(row[metric]) for row in rows]


def read_curves(runs, metric):
    """The curves of all runs that have values of the metric, by run; who has none is told, and refused where nobody has."""
    curves, refusals = {}, []
    for run in runs:
        try:
            curves[run] = read_curve(run, metric)
        except Refusal as refusal:
            refusals.append(refusal)
    if not curves:
        raise refusals[0]
    for refusal in refusals:
        print(f"menger: warning: {refusal}; it is left out", file=sys.stderr)
    return curves


def band(curves):
    """x, mean, smallest and largest of several (x, y), between the points of each in straight lines, where all have values."""
    import numpy

    if len(curves) == 1:
        x, y = map(numpy.asarray, curves[0])
        return x, y, y, y
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if last < first:
        raise Refusal("the runs of one configuration have no steps in common: give one of them, or let them go on")
    grid = numpy.linspace(first, last, POINTS if last > first else 1)
    values = numpy.array([numpy.interp(grid, x, y) for x, y in curves])
    return grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0)


def times(curves, steps):
    """After how many seconds of training the runs, on the average, had made so many steps."""
    import numpy

    return numpy.mean([numpy.interp(steps, given["steps"], given["training_seconds"]) for given, _ in curves], axis=0)


def draw_band(panel, x, mean, low, high, name, alone):
    """A line with its band; a single point with a bar."""
    line, = panel.plot(x, mean, label=name, linewidth=1.5, marker="o" if len(x) == 1 else None)
    if alone:
        return
    if len(x) == 1:
        panel.errorbar(x, mean, yerr=[mean - low, high - mean], color=line.get_color(), capsize=4)
    else:
        panel.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)


def draw(groups, curves_of, metric, path):
    """Writes the picture."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "menger"  # The same picture is the same file.
    matplotlib.rcParams["svg.fonttype"] = "none"  # Text stays text.
    from matplotlib import pyplot

    bands = []
    for name, runs in groups:
        curves = [curves_of[run] for run in runs]
        steps, *values = band([(given["steps"], metric_values) for given, metric_values in curves])
        bands.append((name, len(runs) == 1, {"steps": steps, "training_seconds": times(curves, steps)}, values))
    figure, panels = pyplot.subplots(1, len(AXES), figsize=(11, 4), sharey=True, layout="constrained")
    for panel, (axis, label) in zip(panels, AXES):
        for name, alone, points, values in bands:
            draw_band(panel, points[axis], *values, name, alone)
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
        panel.ticklabel_format(axis="x", style="plain" if axis != "steps" else "sci", scilimits=(-3, 6))
    panels[0].set_ylabel(metric.replace("_", " "))
    panels[0].legend()
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": "menger"}
    figure.savefig(path, dpi=150, metadata=metadata)


def install():
    """Installs matplotlib into the project's .venv and starts this program again with it."""
    setup = ROOT / "tools" / "setup.sh"
    if os.environ.get(INSTALLED) or not setup.exists():
        raise Refusal(f"{sys.executable} has no matplotlib: pip install -r tools/requirements_plot.txt, or name an interpreter "
                      "that has it in MENGER_PYTHON")
    # Torch is not needed for this; setup.sh says what it does and what to do where it fails.
    done = subprocess.run([setup, "python", "plot"], env={**os.environ, "TORCH": "OFF"}, stdout=sys.stderr)
    if done.returncode != 0:
        raise Refusal("matplotlib could not be installed; see above")
    python = pathlib.Path(os.environ.get("MENGER_VENV", ROOT / ".venv")) / "bin" / "python"
    os.execve(python, [str(python), "-m", "menger.plot", *sys.argv[1:]], {**os.environ, INSTALLED: "1"})


def _by_number(path):
    """seed-2 before seed-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


def main():
    parser = argparse.ArgumentParser(prog="menger plot")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--metric", default="episode_return_mean")
    arguments = parser.parse_args()
    try:
        if arguments.out.suffix not in (".png", ".svg"):
            raise Refusal(f"'{arguments.out}' must end with .png or .svg")
        runs = find_runs(arguments.runs)
        curves = read_curves(runs, arguments.metric)
        groups = group([run for run in runs if run in curves])
        if any(importlib.util.find_spec(name) is None for name in ("numpy", "matplotlib")):
            install()
        draw(groups, curves, arguments.metric, arguments.out)
    except (Refusal, OSError) as error:
        print(f"menger: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, Refusal) else 1
    curves = ", ".join(name for name, _ in groups)
    print(f"{arguments.out}: {arguments.metric} of {curves}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
