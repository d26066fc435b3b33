#!/usr/bin/env python3
"""DQN with learning, environment steps a second (Pong: decisions of 4 frames), beside Stable-Baselines3, CleanRL and RLlib.

    bench/dqn_training.py [--seconds S] [--tasks cartpole lunarlander pong] [--systems NAME...]

All have the network, batch and intensity (rows learned from a step) of peers/dqn_tasks.py: uniform replay, 1 step, Adam, neither double
nor duelling, epsilon where it ends. Ours runs a second time with larger batches at the same intensity, and Pong in fp32 too. A peer
runs half of the seconds with 1 thread of torch and half with 2; the better counts. All take turns on the same machine, and the clock
starts once learning has. "as counted": updates x batch / steps. Prints a Markdown table a task; makes .peers/sb3,
.peers/atari_training and .peers/rllib if needed.
"""

import argparse
import dataclasses
import sys

import measure
import training
from peers.dqn_tasks import TASKS


@dataclasses.dataclass(frozen=True)
class Ours:
    """How Menger trains a task: its simulators, as many as serve it, and the steps of the first run, which shows the speed."""

    recipe: str
    larger_batch: int
    workers: int
    environments: int
    horizon: int
    probe_steps: int

    @property
    def slab_steps(self):
        return self.environments * self.horizon


OURS = {
    "cartpole": Ours("cartpole_dqn", 512, 1, 16, 10, 20_000),
    "lunarlander": Ours("lunarlander_dqn", 512, 1, 16, 10, 10_000),
    "pong": Ours("pong_dqn", 512, 2, 16, 8, 2_000),
}


def settings(name, batch_size, precision):
    """What makes our recipe the common task."""
    task, ours = TASKS[name], OURS[name]
    common = {
        "precision": precision, "evaluation.every": 0, "evaluation.episodes": 1, "checkpoint.every": 0,
        "collector.workers": ours.workers, "collector.environments": ours.environments,
        "collector.horizon": ours.horizon, "optimiser.max_gradient_norm": 10,
        "dqn.double": "false", "dqn.n_step": 1, "dqn.learning_rate": task.learning_rate,
        "dqn.target_every": max(1, round(task.target_every * task.intensity / batch_size)),
        "dqn.epsilon_start": task.epsilon, "dqn.epsilon_end": task.epsilon,
        "replay.capacity": task.capacity, "replay.min_size": task.start, "replay.batch_size": batch_size,
        "replay.training_intensity": task.intensity, "replay.sampler": "uniform",
    }  # fmt: skip
    if task.pixels:
        return common | {"network.kind": "nature_cnn"}
    return common | {"network.hidden": "[64,64]"}


def menger(name, seconds, batch_size, precision="auto"):
    """Trains twice: for a little, then for about `seconds` at the speed seen."""
    task, ours = TASKS[name], OURS[name]
    steps = ours.probe_steps
    for _ in range(2):
        chosen = settings(name, batch_size, precision) | {"steps": task.start + steps}
        run = training.train(ours.recipe, chosen, 120 + 20 * seconds)
        counted, took, updates = run.learning(ours.slab_steps)
        rate = counted / took
        steps = max(steps, int(rate * seconds))
    result = {"peer": "menger", "environment": task.environment, "precision": precision, "batch": batch_size, "steps": counted,
              "seconds": round(took, 1), "steps_per_second": rate, "intensity": round(updates * batch_size / counted, 2),
              "other": round(run.run.other, 2)}  # fmt: skip
    measure.record(result)
    return result


def peer(folder, script, name, seconds):
    """The better of 1 thread and 2."""
    results = []
    for threads in (1, 2):
        arguments = [name, "--seconds", seconds / 2, "--threads", threads]
        results += measure.peer(folder, script, arguments, 300 + 4 * seconds).results
    return max(results, key=lambda result: result["steps_per_second"])


def systems(name, seconds):
    """Title and measurement of each system; the peers' names stand alone, ours begin with menger."""
    task = TASKS[name]
    folder = "atari_training" if task.pixels else "sb3"
    ours = {"menger": ("Menger", lambda: menger(name, seconds, task.batch_size)),
            "menger-larger": ("Menger, larger batch", lambda: menger(name, seconds, OURS[name].larger_batch))}  # fmt: skip
    if task.pixels:
        ours["menger-fp32"] = ("Menger, fp32", lambda: menger(name, seconds, task.batch_size, "fp32"))
        ours["menger-larger-fp32"] = ("Menger, larger batch, fp32", lambda: menger(name, seconds, OURS[name].larger_batch, "fp32"))
    return ours | {
        "sb3": ("Stable-Baselines3", lambda: peer(folder, "sb3_dqn.py", name, seconds)),
        "cleanrl": ("CleanRL-style", lambda: peer(folder, "cleanrl_dqn.py", name, seconds)),
        "rllib": ("RLlib", lambda: peer("rllib", "rllib_dqn.py", name, seconds)),
    }


def rows(chosen, results):
    rates = {name: result["steps_per_second"] for name, result in results.items()}
    best = max((rate for name, rate in rates.items() if not name.startswith("menger")), default=None)
    for name, (title, _) in chosen.items():
        if name not in results:
            yield [title] + 7 * ["-"]
            continue
        result = results[name]
        beside_best = measure.ratio(rates[name], best) if name.startswith("menger") else "-"
        yield [title, result["batch"], result["intensity"], result.get("threads", "-"), f"{rates[name]:,.0f}",
               measure.ratio(rates[name], rates.get("sb3")), beside_best, result["other"]]  # fmt: skip


def measured(chosen, name):
    """Results by system, without those that failed."""
    results = {}
    for system, (title, program) in chosen.items():
        measure.note(f"{name}: {title}")
        try:
            results[system] = program()
        except measure.Failed as error:
            measure.note(f"left out: {error}")
    return results


def main():
    everything = list(systems("pong", 0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40, help="of each system and task")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--systems", nargs="*", default=everything, choices=everything)
    options = parser.parse_args()
    failures = 0
    for name in options.tasks:
        chosen = {system: row for system, row in systems(name, options.seconds).items() if system in options.systems}
        results = measured(chosen, name)
        failures += len(chosen) - len(results)
        header = [f"DQN on {TASKS[name].environment}", "batch", "intensity, as counted", "torch threads", "steps/s", "it / SB3",
                  "it / best of the peers", "other"]  # fmt: skip
        print(measure.table(header, rows(chosen, results)) + "\n", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
