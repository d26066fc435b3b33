#!/usr/bin/env python3
"""Training end to end on an Atari game: agent steps (4 frames) a second of PPO with learning, beside the peers.

    bench/atari_training.py [--seconds S] [--rounds N] [--game Pong] [--peers NAME...]

All have the same network (Nature's) and update schedule: 8 environments x 128 steps, minibatches of 256, 4 epochs, 84 x 84 x 4; all
may use every core. Sample Factory trains with its APPO in synchronous mode, the nearest it has. They take turns on the same machine.
Prints a Markdown table with medians; makes .peers/atari_training, .peers/rllib and .peers/sample_factory if needed.
"""

import argparse
import statistics
import sys

import measure
import training


def menger(game, seconds, precision):
    """Trains for about `seconds`; the clock leaves out what comes before the first slab."""
    steps = max(16_384, int(900 * seconds) // 1024 * 1024)
    settings = {"environment": f"ALE/{game}-v5", "steps": steps, "evaluation.every": 0, "evaluation.episodes": 1,
                "checkpoint.every": 0, "precision": precision}  # fmt: skip
    run = training.train("breakout_ppo", settings, 60 + 20 * seconds)
    result = {"peer": "menger", "game": game, "how": precision, "steps": run.summary["steps"], "other": round(run.run.other, 2),
              "seconds": run.summary["training_seconds"], "steps_per_second": run.summary["steps_per_second"]}  # fmt: skip
    measure.record(result)
    return [result]


def programs(game, seconds):
    arguments = ["--game", game, "--seconds", seconds]
    limit_s = 120 + 4 * seconds
    return {
        "menger": ("Menger", lambda: menger(game, seconds, "auto")),
        "menger-fp32": ("Menger, fp32", lambda: menger(game, seconds / 2, "fp32")),
        "cleanrl": ("CleanRL-style + EnvPool", lambda: measure.peer("atari_training", "cleanrl_atari.py", arguments, limit_s).results),
        "sb3": ("Stable-Baselines3", lambda: measure.peer("atari_training", "sb3_atari.py", arguments, limit_s).results),
        "rllib": ("RLlib", lambda: measure.peer("rllib", "rllib_atari.py", arguments, limit_s).results),
        "sample-factory": (
            "Sample Factory",
            lambda: measure.peer("sample_factory", "sample_factory_atari.py", arguments, limit_s).results,
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--peers", nargs="*", default=list(programs("", 0)), help="which to run; Menger is one")
    options = parser.parse_args()
    chosen = {name: program for name, program in programs(options.game, options.seconds).items() if name in options.peers}
    results, failures = {}, 0
    for round_ in range(options.rounds):
        for name, (title, program) in chosen.items():
            measure.note(f"{options.game}, round {round_ + 1}: {title}")
            try:
                results.setdefault(name, []).append(program()[0])
            except measure.Failed as error:
                measure.note(f"left out: {error}")
                failures += 1
    rates = {name: statistics.median(result["steps_per_second"] for result in results[name]) for name in results}
    rows = []
    for name, (title, _) in chosen.items():
        each = [result["steps_per_second"] for result in results.get(name, [])]
        other = max((result["other"] for result in results.get(name, [])), default=None)
        rows.append([title, measure.spread(each), len(each), measure.ratio(rates.get("menger"), rates.get(name)), other])
    print(measure.table([f"PPO on {options.game}", "agent steps/s, median (lowest to highest)", "runs", "Menger / it", "other"], rows))
    best = max((rate for name, rate in rates.items() if not name.startswith("menger")), default=None)
    print(f"\nMenger / best of the peers: {measure.ratio(rates.get('menger'), best)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
