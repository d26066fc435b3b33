"""What every system of bench/dqn_training.py trains with, and what its peers share: their options and the line that they print.

Standard library alone: each peer has packages of its own.
"""

import argparse
import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class Task:
    """One update of `batch_size` draws for every `train_every` steps, once `start` steps are stored; epsilon stays where it ends."""

    environment: str
    pixels: bool  # Nature's network over 4 stacked frames of 84 x 84; otherwise two layers of 64, ReLU.
    batch_size: int
    train_every: int
    learning_rate: float
    target_every: int  # Steps.
    capacity: int
    start: int
    epsilon: float

    @property
    def intensity(self):
        return self.batch_size / self.train_every


# Batches and intensity: CleanRL's dqn.py and dqn_atari.py (the latter's are also the zoo's). Learning starts earlier and Pong's replay is
# smaller than there, which changes no steady speed.
VECTOR = {"pixels": False, "batch_size": 128, "train_every": 10, "learning_rate": 2.5e-4, "target_every": 500, "capacity": 10_000,
          "start": 1_000, "epsilon": 0.05}  # fmt: skip
TASKS = {
    "cartpole": Task("CartPole-v1", **VECTOR),
    "lunarlander": Task("LunarLander-v3", **VECTOR),
    "pong": Task("Pong", True, 32, 4, 1e-4, 1_000, 50_000, 2_000, 0.01),
}


def options(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def report(peer, version, chosen, steps, updates, seconds):
    """Prints the result; `updates` are of the task's batch size."""
    task = TASKS[chosen.task]
    line = {"peer": peer, "version": version, "environment": task.environment, "threads": chosen.threads, "batch": task.batch_size,
            "steps": steps, "seconds": round(seconds, 1), "steps_per_second": round(steps / seconds, 1),
            "intensity": round(updates * task.batch_size / steps, 2)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
