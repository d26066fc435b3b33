"""Running `menger train` for a benchmark, and reading what it wrote."""

import csv
import json
import pathlib
import tempfile

import measure


class Trained:
    """A finished run: the measured command, its summary.json, and the rows of its progress.csv as numbers (None: unknown)."""

    def __init__(self, run, out):
        self.run, self.summary = run, json.loads((out / "summary.json").read_text())
        with open(out / "progress.csv") as file:
            self.rows = [{key: float(value) if value else None for key, value in row.items()} for row in csv.DictReader(file)]

    def learning(self, slab_steps):
        """(steps, seconds of training, updates) from the first row after learning started to the last; `updates` are means of slabs."""
        first = next(i for i, row in enumerate(self.rows) if row["updates"])
        updates = 0
        for before, row in zip(self.rows[first:], self.rows[first + 1 :]):
            updates += round(row["updates"] * (row["steps"] - before["steps"]) / slab_steps)
        start, end = self.rows[first], self.rows[-1]
        return int(end["steps"] - start["steps"]), end["training_seconds"] - start["training_seconds"], updates


def train(recipe, settings, limit_s, seed=1):
    """Trains a recipe once, in a folder that goes again; throws measure.Failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        command = [measure.BUILD / "menger", "--log", "error", "train", recipe, "--seed", seed, "--out", out]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        return Trained(measure.run(command, limit_s), out)
