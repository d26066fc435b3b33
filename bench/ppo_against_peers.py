#!/usr/bin/env python3
"""Benchmark c: PPO beside Stable-Baselines3, a CleanRL-style PPO and PufferLib, in turn on the same machine.

    bench/ppo_against_peers.py [--part speed|efficiency|lunar|wallclock|puffer]... [--seeds N] [--budget SECONDS]

  speed       steps a second on CartPole with the hyper-parameters of SB3's zoo
  efficiency  the same settings: environment steps and seconds until solved, over --seeds seeds
  lunar       steps a second on LunarLander with the hyper-parameters of SB3's zoo
  wallclock   seconds until CartPole is solved, with recipes tuned for that (--recipe)
  puffer      training steps a second with a network and schedule as light as PufferLib's CartPole

Solved: a mean of at least 475 over 100 greedy episodes, reached twice in a row; the first of the two counts, evaluation is
outside the clock. Prints Markdown tables. "other": CPUs that the rest of the machine used meanwhile; trust rows up to 0.1.
Once a part has used its budget no further run of it is started, and the table says how many there were.
"""

import argparse
import pathlib
import statistics
import sys
import time

import measure
import training

EVALUATION_EVERY, EVALUATION_EPISODES, SOLVED = 2560, 100, 475
RECIPES = pathlib.Path(__file__).resolve().parent / "recipes"
FAST_RECIPES = ["cartpole_ppo_fast"]
PARTS = ["speed", "efficiency", "lunar", "wallclock", "puffer"]
QUIET = {"evaluation.every": 0, "checkpoint.every": 0}  # What a speed measurement leaves out.


def settings_for_solving(every):
    return {"evaluation.every": every, "evaluation.episodes": EVALUATION_EPISODES, "evaluation.stop_at_return": SOLVED,
            "progress.every": every, "checkpoint.every": 0}  # fmt: skip


def menger(recipe, seed, limit_s, **settings):
    """Trains once; returns one result, with where it was solved if it was evaluated."""
    run = training.train(recipe, settings.pop("set", {}), limit_s, seed)
    evaluations = [row for row in run.rows if row["evaluation_return_mean"] is not None]
    result = {"peer": "menger", "recipe": pathlib.Path(recipe).stem, "seed": seed, "steps": run.summary["steps"],
              "seconds": run.summary["training_seconds"], "steps_per_second": run.summary["steps_per_second"],
              "wall": run.run.wall, "other": run.run.other, "final": run.summary["evaluation"]["return_mean"],
              "solved_steps": None, "solved_seconds": None}  # fmt: skip
    for first, second in zip(evaluations, evaluations[1:]):
        if min(row["evaluation_return_mean"] for row in (first, second)) >= SOLVED:
            result["solved_steps"] = int(first["steps"])
            result["solved_seconds"] = first["training_seconds"]
            break
    measure.record(result)
    return result


def sb3(mode, task, seed, limit_s):
    return measure.peer("sb3", "sb3_ppo.py", [mode, task, "--seed", seed], limit_s).results[0]


def cleanrl(seed, limit_s):
    return measure.peer("cleanrl", "cleanrl_ppo.py", ["--seed", seed], limit_s).results[0]


def in_turn(contestants, seeds, budget_s):
    """Runs every contestant with seed 1, then every one with seed 2, ...; returns their results by name."""
    results, start = {name: [] for name in contestants}, time.monotonic()
    for seed in range(1, seeds + 1):
        for name, train in contestants.items():
            left = budget_s - (time.monotonic() - start)
            if left <= 0:
                measure.note(f"the budget of {budget_s:.0f} s is used up at seed {seed}")
                return results
            if train is None:
                continue
            try:
                results[name].append(train(seed, max(60.0, left)))
                measure.note(f"{name}, seed {seed}: {results[name][-1]['steps_per_second']:,.0f} steps/s")
            except measure.Failed as error:
                measure.note(f"{name}, seed {seed}: left out: {error}")
                if seed == 1:
                    contestants[name] = None  # It cannot run here at all; do not try again.
    return results


def column(results, key):
    return [row[key] for row in results if row.get(key) is not None]


def median(values):
    return statistics.median(values) if values else None


def speed_table(results, base):
    rows = []
    for name, runs in results.items():
        rates = column(runs, "steps_per_second")
        rows.append([name, len(runs), max(column(runs, "steps"), default="-"), measure.spread(rates),
                     measure.ratio(median(rates), median(column(results[base], "steps_per_second"))),
                     measure.spread(column(runs, "other"), 2)])  # fmt: skip
    return measure.table(["who", "runs", "steps", "steps/s, median (lowest to highest)", f"ratio to {base}", "other"], rows)


def solved_table(results, base):
    rows = []
    for name, runs in results.items():
        steps, seconds = column(runs, "solved_steps"), column(runs, "solved_seconds")
        rows.append([name, len(runs), len(runs) - len(steps), measure.spread(steps), measure.spread(seconds, 2),
                     measure.ratio(median(steps), median(column(results[base], "solved_steps"))),
                     measure.ratio(median(column(results[base], "solved_seconds")), median(seconds)),
                     measure.spread(column(runs, "wall"), 2), measure.spread(column(runs, "other"), 2)])  # fmt: skip
    return measure.table(["who", "seeds", "failures", "solved: steps, median (lowest to highest)",
                          "solved: seconds of training", f"steps / {base}", f"times as fast as {base}",
                          "whole process, s", "other"], rows)  # fmt: skip


def part_speed(options):
    contestants = {
        "Menger": lambda seed, limit: menger("cartpole_ppo", seed, limit, set=QUIET),
        "Menger, one core": lambda seed, limit: menger("cartpole_ppo", seed, limit, set=QUIET | {"learner_threads": 1}),
        "SB3": lambda seed, limit: sb3("speed", "cartpole", seed, limit),
        "CleanRL-style, its own settings": cleanrl,
    }
    print("### Steps per second, CartPole-v1, PPO with the zoo's settings\n")
    print(speed_table(in_turn(contestants, min(options.seeds, 3), options.budget), "SB3"))


def part_efficiency(options):
    settings = settings_for_solving(EVALUATION_EVERY)
    contestants = {
        "Menger": lambda seed, limit: menger("cartpole_ppo", seed, limit, set=settings),
        "SB3": lambda seed, limit: sb3("efficiency", "cartpole", seed, limit),
    }
    print("### Sample efficiency, CartPole-v1, PPO with the zoo's settings, 100,000 steps at most\n")
    print(solved_table(in_turn(contestants, options.seeds, options.budget), "SB3"))


def part_lunar(options):
    settings = QUIET | {"steps": 7 * 16 * 1024}
    contestants = {
        "Menger": lambda seed, limit: menger("lunarlander_ppo", seed, limit, set=settings),
        "Menger, one core": lambda seed, limit: menger("lunarlander_ppo", seed, limit, set=settings | {
            "learner_threads": 1, "collector.kind": "serial", "collector.workers": 1,
            "collector.environments": 16}),
        "SB3": lambda seed, limit: sb3("speed", "lunarlander", seed, limit),
    }  # fmt: skip
    print("### Steps per second, LunarLander-v3, PPO with the zoo's settings\n")
    print(speed_table(in_turn(contestants, min(options.seeds, 3), options.budget), "SB3"))


def part_wallclock(options):
    settings = settings_for_solving(options.every)
    recipes = {pathlib.Path(recipe).stem: recipe for recipe in options.recipe or FAST_RECIPES}
    contestants = {name: lambda seed, limit, recipe=recipe: menger(recipe, seed, limit, set=settings)
                   for name, recipe in recipes.items()}  # fmt: skip
    starts = [measure.run([measure.BUILD / "menger", "--version"], 30).wall for _ in range(5)]
    results = in_turn(contestants, options.seeds, options.budget)
    print("### Wall clock, CartPole-v1\n")
    print(solved_table(results, next(iter(recipes))))
    print(f"\nThe process starts in {measure.spread(starts, 3)} s; \"whole process\" has that, calibration, evaluations and "
          "checkpoints too.")  # fmt: skip


def part_puffer(options):
    recipe = RECIPES / "cartpole_light.toml"
    contestants = {"Menger, cartpole_light": lambda seed, limit: menger(recipe, seed, limit)}
    results = in_turn(contestants, min(options.seeds, 5), options.budget / 2)["Menger, cartpole_light"]
    rows = [["Menger, cartpole_light", len(results), measure.spread(column(results, "steps_per_second")),
             measure.spread(column(results, "final"), 1), measure.spread(column(results, "other"), 2)]]  # fmt: skip
    rates = []
    try:
        finished = measure.peer("puffer", "puffer_ppo.py", [], max(60.0, options.budget))
        rates = [row["steps_per_second"] for row in finished.results if row["mode"] == "training"]
        rows.append(["PufferLib 3.0.0, its CartPole", 1, measure.spread(rates), "its own task", f"{finished.other:.2f}"])
    except measure.Failed as error:
        measure.note(f"PufferLib left out: {error}")
        rows.append(["PufferLib 3.0.0", 0, "-", "-", "-"])
    print("### Training throughput with a network and schedule as light as PufferLib's CartPole\n")
    print(measure.table(["who", "runs", "training steps/s", "greedy mean at the end", "other"], rows))
    print(f"\nRatio: {measure.ratio(median(column(results, 'steps_per_second')), median(rates))}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="may be repeated; default: all")
    parser.add_argument("--seeds", type=int, default=20, help="of efficiency and wallclock; the others take 3 to 5 at most")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds a part may take before no run is started")
    parser.add_argument("--recipe", action="append", help="of wallclock, may be repeated; default: all that are tuned for it")
    parser.add_argument("--every", type=int, default=EVALUATION_EVERY, help="wallclock: steps between evaluations")
    options = parser.parse_args()
    failures = 0
    for part in options.part or PARTS:
        measure.note(f"part {part}")
        try:
            globals()[f"part_{part}"](options)
        except measure.Failed as error:
            measure.note(f"part {part} left out: {error}")
            failures += 1
        print(flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
