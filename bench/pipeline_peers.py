#!/usr/bin/env python3
"""Collecting and learning at the same time, environment steps a second of LunarLander-v3, beside RLlib and Sample Factory.

    bench/pipeline_peers.py [--seconds S] [--runs N] [--systems NAME...]

Learning: experiments/lunarlander_apex.toml (DQN by priorities: double, duelling, 3 steps, 256-256, batches of 128, 8 environments) in
our threads and in our processes, and RLlib's DQN with two env runners of 4 environments each, which is what it has since its Ape-X
went. All learn 32 rows from a step, with one thread that learns; "as counted": updates x 128 / steps. RLlib's runners and learner take
turns, so it runs a second time with longer turns: 32 steps of each environment, not 4.

Collecting: our processes with two collectors of 4 environments and inference apart, which learn one row from 100 steps, Sample
Factory's sampler alone, of as many workers and environments, and its APPO, which learns from every step once. It needs a Gymnasium
from before LunarLander-v3: that is LunarLander-v2.

All take turns on the same machine, round by round; the clock starts once learning (collecting) has. Prints two Markdown tables with
medians; makes .peers/rllib and .peers/sample_factory if needed.
"""

import argparse
import dataclasses
import statistics
import sys
from typing import Callable

import measure
import training

RECIPE = "lunarlander_apex"
RECIPE_FILE = measure.ROOT / "experiments" / f"{RECIPE}.toml"
BATCH_SIZE = 128  # The recipe's.
PROBE_STEPS = {True: 4_000, False: 20_000}  # If it learns: of the first run of ours, which shows the speed; no run is shorter.
LONG_FRAGMENT = 32


@dataclasses.dataclass
class Ours:
    """A pipeline of ours; after the first run it knows how many steps take as long as is asked for."""

    settings: dict
    seconds: float
    learns: bool = True
    steps: int = 0

    def once(self):
        chosen = {"evaluation.every": 0, "evaluation.episodes": 1, "checkpoint.every": 0} | self.settings | {"steps": self.steps}
        run = training.train(RECIPE, chosen, 120 + 20 * self.seconds)
        # Rows of pipelines have the updates since the row before.
        first = next(i for i, row in enumerate(run.rows) if row["updates"] or not self.learns)
        start, end = run.rows[first], run.rows[-1]
        steps, seconds = int(end["steps"] - start["steps"]), end["training_seconds"] - start["training_seconds"]
        updates = int(sum(row["updates"] or 0 for row in run.rows[first + 1 :]))
        return {"peer": "menger", "settings": self.settings, "steps": steps, "updates": updates, "seconds": round(seconds, 1),
                "steps_per_second": steps / seconds, "intensity": round(updates * BATCH_SIZE / steps, 2),
                "steps_per_second_with_start": run.summary["steps"] / run.summary["training_seconds"],
                "other": round(run.run.other, 2)}  # fmt: skip

    def __call__(self):
        if self.steps == 0:
            self.steps = PROBE_STEPS[self.learns]
            self.resize(self.once())
        result = self.once()
        self.resize(result)
        measure.record(result)
        return result

    def resize(self, result):
        self.steps = max(PROBE_STEPS[self.learns], int(result["steps_per_second"] * self.seconds))


@dataclasses.dataclass(frozen=True)
class System:
    title: str
    learns: bool  # Otherwise it collects, which is the second table.
    program: Callable[[], dict]


def peer(folder, script, arguments, seconds):
    return lambda: measure.peer(folder, script, [*arguments, "--seconds", seconds], 120 + 4 * seconds).results[0]


def systems(seconds):
    """By name; ours begin with menger."""

    def rllib(*arguments):
        return peer("rllib", "rllib_apex.py", [RECIPE_FILE, *arguments], seconds)

    def sample_factory(what):
        return peer("sample_factory", "sample_factory_lunarlander.py", [what, RECIPE_FILE], seconds)

    apart = {"topology.kind": "processes", "topology.inference": "apart", "topology.collectors": 2, "replay.training_intensity": 0.01}
    return {
        "menger-threads": System("Menger, threads", True, Ours({"topology.kind": "threads"}, seconds)),
        "menger-processes": System("Menger, processes", True, Ours({"topology.kind": "processes"}, seconds)),
        "rllib": System("RLlib, 2 env runners", True, rllib()),
        "rllib-long": System(f"RLlib, 2 env runners, turns of {LONG_FRAGMENT}", True, rllib("--fragment", LONG_FRAGMENT)),
        "menger-collecting": System("Menger, processes, inference apart", False, Ours(apart, seconds, learns=False)),
        "sample-factory": System("Sample Factory, sampler alone", False, sample_factory("sampling")),
        "sample-factory-appo": System("Sample Factory, APPO", False, sample_factory("training")),
    }  # fmt: skip


def rows(chosen, results):
    """A row a system: ours over it, once for each way of ours."""
    rates = {name: statistics.median(result["steps_per_second"] for result in results[name]) for name in chosen if name in results}
    for name, system in chosen.items():
        each = results.get(name, [])
        updates = [result["updates"] / result["seconds"] for result in each if "updates" in result]
        intensities = [result["intensity"] for result in each if "intensity" in result]
        beside = [measure.ratio(rates.get(ours), rates.get(name)) for ours in chosen if ours.startswith("menger")]
        yield [system.title, measure.spread([result["steps_per_second"] for result in each]), len(each),
               f"{statistics.median(updates):,.1f}" if updates else "-", measure.spread(intensities, 2), *beside,
               max((result["other"] for result in each), default="-")]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--runs", type=int, default=3, help="of each system, in turn")
    parser.add_argument("--systems", nargs="*", default=list(systems(0)), choices=list(systems(0)))
    options = parser.parse_args()
    chosen = {name: system for name, system in systems(options.seconds).items() if name in options.systems}
    results, failures = {}, 0
    for round_ in range(options.runs):
        for name, system in chosen.items():
            measure.note(f"round {round_ + 1}: {system.title}")
            try:
                results.setdefault(name, []).append(system.program())
            except measure.Failed as error:
                measure.note(f"left out: {error}")
                failures += 1
    results = {name: each for name, each in results.items() if each}
    for title, learns in (("DQN by priorities on LunarLander", True), ("Collecting LunarLander", False)):
        part = {name: system for name, system in chosen.items() if system.learns == learns}
        if part:
            ours = [f"{system.title} / it" for name, system in part.items() if name.startswith("menger")]
            header = [title, "steps/s, median (lowest to highest)", "runs", "updates/s", "rows learned from a step, as counted",
                      *ours, "other"]  # fmt: skip
            print(measure.table(header, rows(part, results)) + "\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
