#!/usr/bin/env python3
"""SAC and TD3 with learning, environment steps a second, beside Stable-Baselines3, CleanRL-style, SBX and RLlib (which has SAC alone).

    bench/continuous.py [--seconds S] [--algorithms sac td3] [--tasks halfcheetah pendulum] [--systems NAME...]

All make one update of 256 rows a step, so steps a second are updates a second, with the networks and settings of
peers/continuous_tasks.py: uniform replay, 1 step, Adam, a temperature that is learned. Ours runs a second time with 8 environments,
each step of which has its update too. Everybody runs half of the seconds with 1 thread that learns (torch's, XLA's, ours) and half
with 2; the better counts. (Where several updates are due and cores idle, another thread of ours gathers the next batch.) All take
turns on the same machine, and the clock starts once learning has. "as counted": updates / steps. Prints a Markdown table for each
algorithm and task; makes .peers/sb3, .peers/sbx and .peers/rllib if needed.
"""

import argparse
import sys

import measure
import training
from peers import continuous_tasks
from peers.continuous_tasks import TASKS

ENVIRONMENTS = 8  # Of our second run.
PROBE_STEPS = 1_000  # Of the first run, which shows the speed.


def settings(algorithm, name, environments, threads):
    """What makes our recipe the common task."""
    task = TASKS[name]
    common = {
        "evaluation.every": 0, "evaluation.episodes": 1, "checkpoint.every": 0, "learner_threads": threads,
        "collector.kind": "serial", "collector.workers": 1, "collector.environments": environments, "collector.horizon": 1,
        "network.hidden": f"[{task.hidden},{task.hidden}]", "network.activation": "relu", "optimiser.max_gradient_norm": 0,
        "replay.capacity": task.capacity, "replay.min_size": task.start, "replay.batch_size": continuous_tasks.BATCH_SIZE,
        "replay.training_intensity": continuous_tasks.BATCH_SIZE, "replay.sampler": "uniform",
        f"{algorithm}.discount": continuous_tasks.DISCOUNT, f"{algorithm}.learning_rate": continuous_tasks.LEARNING_RATE,
        f"{algorithm}.target_rate": continuous_tasks.TARGET_RATE, f"{algorithm}.n_step": 1, f"{algorithm}.critics": 2,
    }  # fmt: skip
    if algorithm == "sac":
        return common | {"sac.learn_temperature": "true"}
    return common | {"td3.policy_delay": continuous_tasks.POLICY_DELAY,
                     "td3.exploration_noise": continuous_tasks.EXPLORATION_NOISE,
                     "td3.target_noise": continuous_tasks.TARGET_NOISE,
                     "td3.target_noise_clip": continuous_tasks.TARGET_NOISE_CLIP}  # fmt: skip


def better(results):
    return max(results, key=lambda result: result["steps_per_second"])


def menger(algorithm, name, seconds, environments):
    """The better of 1 thread and 2: each trains for a little, then for about half of the seconds at the speed seen."""
    task, results = TASKS[name], []
    for threads in (1, 2):
        steps = PROBE_STEPS
        for _ in range(2):
            chosen = settings(algorithm, name, environments, threads) | {"steps": task.start + steps}
            run = training.train(f"{name}_{algorithm}", chosen, 120 + 20 * seconds)
            counted, took, updates = run.learning(environments)
            rate = counted / took
            steps = max(PROBE_STEPS, int(rate * seconds / 2))
        results.append({"peer": "menger", "algorithm": algorithm, "environment": task.environment, "environments": environments,
                        "threads": threads, "steps": counted, "seconds": round(took, 1), "steps_per_second": rate,
                        "updates_per_step": round(updates / counted, 2), "other": round(run.run.other, 2)})  # fmt: skip
        measure.record(results[-1])
    return better(results)


def peer(folder, script, algorithm, name, seconds):
    """The better of 1 thread and 2."""
    results = []
    for threads in (1, 2):
        arguments = [algorithm, name, "--seconds", seconds / 2, "--threads", threads]
        results += measure.peer(folder, script, arguments, 300 + 4 * seconds).results
    return better(results)


def systems(algorithm, name, seconds):
    """Title and measurement of each system; the peers' names stand alone, ours begin with menger."""
    chosen = {
        "menger": ("Menger", lambda: menger(algorithm, name, seconds, 1)),
        "menger-environments": (f"Menger, {ENVIRONMENTS} environments", lambda: menger(algorithm, name, seconds, ENVIRONMENTS)),
        "sb3": ("Stable-Baselines3", lambda: peer("sb3", "sb3_continuous.py", algorithm, name, seconds)),
        "cleanrl": ("CleanRL-style", lambda: peer("sb3", "cleanrl_continuous.py", algorithm, name, seconds)),
        "sbx": ("SBX", lambda: peer("sbx", "sbx_continuous.py", algorithm, name, seconds)),
    }
    if algorithm == "sac":
        chosen["rllib"] = ("RLlib", lambda: peer("rllib", "rllib_continuous.py", algorithm, name, seconds))
    return chosen


def rows(chosen, results):
    rates = {name: result["steps_per_second"] for name, result in results.items()}
    best = max((rate for name, rate in rates.items() if not name.startswith("menger")), default=None)
    for name, (title, _) in chosen.items():
        if name not in results:
            yield [title] + 6 * ["-"]
            continue
        result = results[name]
        beside_best = measure.ratio(rates[name], best) if name.startswith("menger") else "-"
        yield [title, result["threads"], result["updates_per_step"], f"{rates[name]:,.0f}",
               measure.ratio(rates[name], rates.get("sb3")), beside_best, result["other"]]  # fmt: skip


def measured(chosen, what):
    """Results by system, without those that failed."""
    results = {}
    for system, (title, program) in chosen.items():
        measure.note(f"{what}: {title}")
        try:
            results[system] = program()
        except measure.Failed as error:
            measure.note(f"left out: {error}")
    return results


def main():
    everything = list(systems("sac", "halfcheetah", 0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40, help="of each system, algorithm and task")
    parser.add_argument("--algorithms", nargs="*", default=continuous_tasks.ALGORITHMS, choices=continuous_tasks.ALGORITHMS)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--systems", nargs="*", default=everything, choices=everything)
    options = parser.parse_args()
    failures = 0
    for algorithm in options.algorithms:
        for name in options.tasks:
            task = TASKS[name]
            what = f"{algorithm.upper()} on {task.environment}, {task.hidden}-{task.hidden}"
            everybody = systems(algorithm, name, options.seconds)
            chosen = {system: row for system, row in everybody.items() if system in options.systems}
            results = measured(chosen, what)
            failures += len(chosen) - len(results)
            header = [what, "threads", "updates a step, as counted", "steps/s", "it / SB3", "it / best of the peers", "other"]
            print(measure.table(header, rows(chosen, results)) + "\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
