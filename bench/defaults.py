#!/usr/bin/env python3
"""What a recipe of two lines learns, beside Stable-Baselines3's own defaults: the table of docs/performance.md, "Defaults".

    bench/defaults.py [--cells TEXT...] [--seeds N] [--alone] [--results FILE]

A cell is an algorithm, an environment and a number of steps, which both get, and nothing else: no setting of either is changed. Each
seed's figure is the mean return of 100 greedy episodes after the last step. `p` is that of a one-sided permutation test of the
difference of the means, for "Stable-Baselines3 is better": at .05 and less it counts as shown. A floor is what the mean of our seeds
must reach. Exits with 1 where a floor is missed or Stable-Baselines3 is better.

--alone runs no peer. FILE keeps what was measured, one JSON object a line: what is there is not measured again. Makes .peers/sb3 if
needed.
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import random
import statistics
import sys
import tempfile

import measure

EPISODES = 100
ALL_SPLITS_MAX, SPLITS_DRAWN = 200_000, 100_000


@dataclasses.dataclass(frozen=True)
class Cell:
    algorithm: str
    environment: str
    steps: int
    seeds: int
    floor: float | None = None
    peer: bool = True  # Stable-Baselines3's defaults fit the task.

    @property
    def name(self):
        return f"{self.algorithm} {self.environment} {measure.short(self.steps)}"


# HalfCheetah needs normalisation, which Stable-Baselines3 does not do by default; FrozenLake has no floor but the peer.
CELLS = [
    Cell("ppo", "CartPole-v1", 100_000, 10, 475),
    Cell("ppo", "Acrobot-v1", 200_000, 10, -100),
    Cell("ppo", "FrozenLake-v1", 100_000, 10),
    Cell("ppo", "LunarLander-v3", 1_000_000, 5, 200),
    Cell("ppo", "HalfCheetah-v5", 1_000_000, 5, 1400, peer=False),
    Cell("a2c", "CartPole-v1", 100_000, 10, 400),
    Cell("dqn", "CartPole-v1", 100_000, 10, 250),
]


def ours(cell, seed):
    """(mean return, seconds of training)."""
    with tempfile.TemporaryDirectory() as folder:
        recipe, out = pathlib.Path(folder) / "recipe.toml", pathlib.Path(folder) / "run"
        recipe.write_text(f'environment = "{cell.environment}"\nalgorithm = "{cell.algorithm}"\n')
        command = [measure.BUILD / "menger", "--log", "error", "train", recipe, "--seed", seed, "--out", out,
                   "--set", f"steps={cell.steps}", "--set", f"evaluation.episodes={EPISODES}"]  # fmt: skip
        measure.run(command, limit_s=3600)
        summary = json.loads((out / "summary.json").read_text())
    if summary["steps"] > cell.steps:
        raise measure.Failed(f"{cell.name} was trained for {summary['steps']} steps")
    return summary["evaluation"]["return_mean"], summary["training_seconds"]


def peers(cell, seed):
    arguments = [cell.algorithm, cell.environment, cell.steps, seed, "--episodes", EPISODES]
    (result,) = measure.peer("sb3", "sb3_defaults.py", arguments, limit_s=7200).results
    return result["return"], result["seconds"]


def chance(ours, theirs):
    """The share of splits of all figures into two such groups whose difference of means is at least theirs - ours."""
    pool, count = [*ours, *theirs], len(theirs)
    observed, total = statistics.fmean(theirs) - statistics.fmean(ours), sum(pool)

    def difference(part):
        return sum(part) / count - (total - sum(part)) / (len(pool) - count)

    draw = random.Random(0)
    splits = itertools.combinations(pool, count)
    if len(list(itertools.islice(itertools.combinations(pool, count), ALL_SPLITS_MAX + 1))) > ALL_SPLITS_MAX:
        splits = (draw.sample(pool, count) for _ in range(SPLITS_DRAWN))
    larger = [difference(part) >= observed - 1e-9 for part in splits]
    return sum(larger) / len(larger)


class Results:
    """Figures by system, cell and seed, kept in a file."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                row = json.loads(line)
                self.known[row["system"], row["cell"], row["seed"]] = row["return"], row["seconds"]

    def get(self, system, cell, seed, run):
        key = (system, cell.name, seed)
        if key not in self.known:
            self.known[key] = run(cell, seed)
            value, seconds = self.known[key]
            measure.note(f"{system}: {cell.name}, seed {seed}: {value:.1f} in {seconds:.0f} s")
            if self.path is not None:
                row = {"system": system, "cell": cell.name, "seed": seed, "return": value, "seconds": seconds}
                with open(self.path, "a") as file:
                    file.write(json.dumps(row) + "\n")
        return self.known[key]


def row(cell, results, options):
    """(cells of the table, whether it holds)."""
    seeds = range(1, (options.seeds or cell.seeds) + 1)
    mine = [results.get("menger", cell, seed, ours) for seed in seeds]
    theirs = [results.get("sb3", cell, seed, peers) for seed in seeds] if cell.peer and not options.alone else []
    mean = statistics.fmean(value for value, _ in mine)
    reached = cell.floor is None or mean >= cell.floor
    p = chance([value for value, _ in mine], [value for value, _ in theirs]) if theirs else None
    better = p is not None and p <= 0.05
    return [cell.algorithm.upper(), cell.environment, f"{cell.steps:,}", len(mine), shown(mine), seconds(mine), shown(theirs),
            seconds(theirs), "-" if p is None else f"{p:.2f}", "-" if cell.floor is None else f"{cell.floor:,.0f}",
            "holds" if reached and not better else "**missed**"], reached and not better  # fmt: skip


def shown(figures):
    """The mean, and the lowest and highest seed."""
    if not figures:
        return "-"
    values = [value for value, _ in figures]
    digits = 2 if max(map(abs, values)) < 10 else 1
    return f"{statistics.fmean(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def seconds(figures):
    return measure.spread([time for _, time in figures]) if figures else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=[""], metavar="TEXT", help="those whose name has one of these texts")
    parser.add_argument("--seeds", type=int, help="instead of each cell's own number")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    results = Results(options.results)
    rows, all_hold = [], True
    for cell in CELLS:
        if any(text in cell.name for text in options.cells):
            cells, holds = row(cell, results, options)
            rows.append(cells)
            all_hold &= holds
    print(measure.table(["algorithm", "environment", "steps", "seeds", "Menger: return (seeds)", "s", "SB3: return (seeds)", "s",
                         "p: SB3 better", "floor", ""], rows))  # fmt: skip
    sys.exit(0 if all_hold else 1)


if __name__ == "__main__":
    main()
