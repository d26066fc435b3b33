"""Draws what bench/runtime_failures.py has measured: plot_failures.py SERIES.json PLOT.svg; runs in .peers/plots.

A panel a series: calls a second over time, those that are run again on top of the new ones; a mark for each death of a worker; and
how many workers live, if that is said.
"""

import json
import math
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "menger", "font.size": 9, "font.family": "sans-serif"}
from matplotlib import pyplot  # noqa: E402: the backend is chosen first.

NEW, AGAIN, DEATH, WORKERS = "#4878a8", "#e08030", "#c02020", "#303030"


def draw(series, axes):
    edges = [i * series["bin_s"] for i in range(len(series["ended"]) + 1)]
    new = [ended - again for ended, again in zip(series["ended"], series["again"])]
    axes.stairs(new, edges, fill=True, color=NEW, label="new")
    axes.stairs(series["ended"], edges, baseline=new, fill=True, color=AGAIN, label="run again")
    top = 1.3 * max(series["ended"])
    marks = [(death, death, math.nan) for death in series["deaths"]]
    axes.plot(sum(marks, ()), (0.93 * top, 0.99 * top, math.nan) * len(marks), color=DEATH, linewidth=0.7, label="a worker dies")
    axes.set_title(series["name"], loc="left", fontsize=9)
    axes.set_ylabel("calls a second")
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, top)
    if series["living"]:
        right = axes.twinx()
        right.stairs(series["living"], edges, color=WORKERS, linewidth=0.8)
        axes.plot([], [], color=WORKERS, linewidth=0.8, label="workers that live")  # For the legend.
        right.set_ylabel("workers")
        right.yaxis.get_major_locator().set_params(integer=True)
        # What they did with nothing in their way is drawn at the height of their number.
        right.set_ylim(0, top * max(series["living"]) / sorted(series["ended"])[int(0.9 * len(new))])


def main():
    source, target = sys.argv[1:]
    with open(source) as file:
        every = json.load(file)
    figure, panels = pyplot.subplots(len(every), 1, figsize=(8, 2.2 * len(every)), squeeze=False)
    for series, axes in zip(every, panels[:, 0]):
        draw(series, axes)
    panels[0, 0].legend(loc="lower left", ncols=4, framealpha=0.9)
    panels[-1, 0].set_xlabel("seconds")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
