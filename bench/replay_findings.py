#!/usr/bin/env python3
"""Two findings of Stooke & Abbeel (2018), "Accelerated Methods for Deep Reinforcement Learning", at small scale: C51 on CartPole.

    bench/replay_findings.py [--steps N] [--seeds N] [--parts batches simulators]

  batches     batches of 32 to 2,048 at the same training intensity and the same learning rate
  simulators  8 to 256 simulators at the same replay size in all, intensity, batch, and steps between two rounds of updates

Settings of experiments/cartpole_c51.toml. Solved: the first evaluation of 50 greedy episodes with a mean of at least 475, one every
5,120 steps. "as counted": updates x batch / samples, from the first report after learning started to the last; it must be the setting
exactly, or the program ends with 1. Prints a Markdown table a part; about 12 minutes.
"""

import argparse
import statistics
import sys

import measure
import training

RECIPE, INTENSITY, BATCH_SIZE, SOLVED = "cartpole_c51", 12.8, 128, 475
# In this many steps are whole numbers of slabs and of updates, in every setting: what is counted between two reports is exact.
REPORT_STEPS = 2_560
SLAB_STEPS = 256  # Of `simulators`: so many steps between two rounds of updates.
BATCHES, SIMULATORS = [32, 128, 512, 2048], [8, 32, 128, 256]


def batches():
    """(title, settings, batch size, steps of a slab) of each setting; one simulator and 10 steps are the recipe's."""
    for batch_size in BATCHES:
        # The target network follows after as many steps as the recipe's, 500; from 512 on at the nearest whole number of updates.
        target_every = max(1, round(500 * INTENSITY / batch_size))
        yield f"batch {batch_size}", {"replay.batch_size": batch_size, "dqn.target_every": target_every}, batch_size, 10


def simulators():
    for count in SIMULATORS:
        settings = {"collector.environments": count, "collector.horizon": SLAB_STEPS // count}
        yield f"{count} simulators", settings, BATCH_SIZE, SLAB_STEPS


PARTS = {"batches": batches, "simulators": simulators}


def train(settings, batch_size, slab_steps, steps, seed):
    common = {"steps": steps, "progress.every": REPORT_STEPS, "evaluation.every": 2 * REPORT_STEPS, "evaluation.episodes": 50,
              "checkpoint.every": 0, "replay.training_intensity": INTENSITY}  # fmt: skip
    run = training.train(RECIPE, common | settings, 600, seed)
    samples, seconds, updates = run.learning(slab_steps)
    solved = [row["steps"] for row in run.rows if (row["evaluation_return_mean"] or 0) >= SOLVED]
    result = {"settings": settings, "seed": seed, "solved": min(solved, default=None), "final": run.summary["evaluation"]["return_mean"],
              "steps_per_second": samples / seconds, "intensity": updates * batch_size / samples,
              "other": round(run.run.other, 2)}  # fmt: skip
    measure.record(result)
    return result


def row(title, results):
    def column(key):
        return [result[key] for result in results]

    solved = [steps for steps in column("solved") if steps is not None]
    intensities = ", ".join(sorted({f"{intensity:g}" for intensity in column("intensity")}))
    return [title, f"{len(solved)} of {len(results)}", measure.spread(solved), measure.spread(column("final"), 1),
            measure.short(statistics.median(column("steps_per_second"))), intensities, max(column("other"))]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500_000, help=f"rounded up to a multiple of {REPORT_STEPS}; the recipe's by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    steps = -(-options.steps // REPORT_STEPS) * REPORT_STEPS
    wrong = 0
    for part in options.parts:
        rows = []
        for title, settings, batch_size, slab_steps in PARTS[part]():
            measure.note(f"{part}: {title}")
            results = [train(settings, batch_size, slab_steps, steps, seed) for seed in range(1, options.seeds + 1)]
            wrong += sum(result["intensity"] != INTENSITY for result in results)
            rows.append(row(title, results))
        header = [f"C51 on CartPole, {steps:,} steps", "solved", f"samples to {SOLVED}, median (lowest to highest)",
                  "mean return at the end", "steps/s", f"intensity, as counted (set: {INTENSITY})", "other"]  # fmt: skip
        print(measure.table(header, rows) + "\n", flush=True)
    if wrong:
        measure.note(f"{wrong} runs did not learn exactly {INTENSITY} rows from a step")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
