"""Climbs the learning ladder and prints what was reached as a Markdown table (see run.sh).

Each rung is a recipe, a number of seeds and the greedy return that every seed must reach. The thresholds are those of the
field (Gymnasium's reward thresholds, or mean - 3 sd of reference runs), never our own results.
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path("build/release/menger")

# recipe (and settings of it), seeds, episodes of the final evaluation, lowest mean return that passes, where the threshold comes from. Where seeds
# differ more than a threshold can bear (MEAN), it is for the mean over the seeds.
RUNGS = [
    ("cartpole_ppo", 3, 100, 475, "Gymnasium's threshold"),
    ("cartpole_a2c", 3, 100, 475, "Gymnasium's threshold"),
    ("cartpole_dqn", 3, 100, 440, "the field's DQN reaches 488.7 +- 16.1: less 3 sd"),
    ("cartpole_c51", 3, 100, 419, "the field's C51 reaches 481.2 +- 20.5: less 3 sd"),
    ("cartpole_qr_dqn", 3, 100, 440, "as cartpole_dqn"),
    ("cartpole_rainbow", 3, 100, 468, "lowest of the reference runs"),
    ("cartpole_noisy_rainbow", 3, 100, 468, "as cartpole_rainbow"),
    ("cartpole_apex", 3, 100, 475, "Gymnasium's threshold"),
    ("cartpole_apex topology.kind=processes", 3, 100, 475, "Gymnasium's threshold"),
    ("cartpole_es", 3, 100, 475, "Gymnasium's threshold"),
    ("cartpole_masked_ppo_lstm", 2, 50, 475, "Gymnasium's threshold, velocities hidden"),
    ("cartpole_masked_r2d2", 3, 100, 475, "Gymnasium's threshold, velocities hidden"),
    ("acrobot_ppo", 3, 100, -100, "Gymnasium's threshold"),
    ("mountain_car_continuous_ppo", 3, 100, 90, "Gymnasium's threshold"),
    ("pendulum_ppo", 3, 100, -200, "usual threshold of the field; none is defined"),
    ("pendulum_sac", 3, 100, -200, "as pendulum_ppo"),
    ("pendulum_sac topology.kind=threads", 3, 100, -200, "as pendulum_ppo"),
    ("pendulum_td3", 3, 100, -200, "as pendulum_ppo"),
    ("pendulum_es", 3, 100, -200, "as pendulum_ppo"),
    ("lunarlander_ppo", 3, 100, 200, "Gymnasium's threshold"),
    ("lunarlander_continuous_ppo", 2, 100, 200, "Gymnasium's threshold"),
    ("lunarlander_continuous_sac", 3, 100, 200, "Gymnasium's threshold"),
    ("lunarlander_a2c", 10, 100, -60, "mean of the seeds: Stable-Baselines3's -8.5, less 3 standard errors of 10 seeds"),
    ("lunarlander_dqn", 3, 100, 200, "Gymnasium's threshold"),
    ("lunarlander_apex", 3, 100, 200, "Gymnasium's threshold"),
    ("hopper_ppo", 3, 20, 1500, "the field's PPO reaches 2383 +- 272"),
    ("hopper_sac", 3, 100, 1500, "as hopper_ppo, after 300k steps"),
    ("halfcheetah_ppo", 3, 20, 1400, "the field's PPO reaches 1443 +- 46"),
    ("halfcheetah_sac", 3, 100, 4500, "mean of the seeds after 300k steps, each 3000"),
    ("halfcheetah_td3", 3, 100, 4500, "as halfcheetah_sac"),
    ("pong_apex", 1, 20, 18, "points of 21; the field's DQN reaches 20.25 +- 0.41 after 10M steps"),
]
MEAN = {"lunarlander_a2c": -math.inf, "halfcheetah_sac": 3000, "halfcheetah_td3": 3000}  # And what each seed must reach.
FIRST_SEED = 2  # With seed 1 the untrained policies of CartPole's PPO and A2C happen to balance the pole.
UNTRAINED_STEPS = 5_000


def run(recipe, seed, episodes, folder, *settings):
    """Trains one seed; returns (steps, training seconds, evaluation's mean, sd)."""
    out = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "run"
    recipe, *own = recipe.split()
    words = [word for setting in (f"evaluation.episodes={episodes}", *own, *settings) for word in ("--set", setting)]
    subprocess.run([PROGRAM, "--log", "error", "train", recipe, "--seed", str(seed), "--out", str(out), *words], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    summary = json.loads((out / "summary.json").read_text())
    final = summary["evaluation"]
    return summary["steps"], summary["training_seconds"], final["return_mean"], final["return_standard_deviation"]


def untrained(recipe, seed, folder):
    """The greedy return of what the seed begins with: a learning rate of 0 changes nothing."""
    text = pathlib.Path(f"experiments/{recipe.split()[0]}.toml").read_text()
    algorithm = re.search(r'^algorithm = "(.*)"', text, re.MULTILINE)[1]
    settings = [f"{algorithm}.learning_rate=0", f"steps={UNTRAINED_STEPS}"]
    if "[replay]" in text:  # Less than the recipe's, which so few steps would not fill.
        settings += [f"replay.min_size={UNTRAINED_STEPS // 5}", "replay.training_intensity=1"]
    return run(recipe, seed, 20, folder, *settings)[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rungs whose recipe contains this text")
    arguments = parser.parse_args()
    missed = 0
    print("| recipe | seed | steps | seconds | greedy return, mean ± sd | needed | |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for recipe, seeds, episodes, needed, source in RUNGS:
            if arguments.only not in recipe:
                continue
            results = []
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                before = untrained(recipe, seed, folder)
                if before >= needed:
                    sys.exit(f"{recipe}, seed {seed}: reaches {before:.1f} untrained, so it shows nothing; take another seed")
                steps, seconds, mean, deviation = run(recipe, seed, episodes, folder)
                results.append(mean)
                passed = mean >= MEAN.get(recipe, needed)
                missed += not passed
                verdict = "**missed**" if not passed else "" if recipe in MEAN else "reached"
                print(f"| {recipe} | {seed} | {steps:,} | {seconds:.1f} | {mean:.1f} ± {deviation:.1f} | {needed} ({source}) | "
                      f"{verdict} |", flush=True)
            if recipe in MEAN:
                mean = statistics.fmean(results)
                missed += mean < needed
                print(f"| {recipe} | all | | | {mean:.1f} ± {statistics.stdev(results):.1f} | {needed} ({source}) | "
                      f"{'reached' if mean >= needed else '**missed**'} |", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
