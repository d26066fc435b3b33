"""What every system of bench/continuous.py trains with, and what its peers share: their options and the line that they print.

Standard library alone: each peer has packages of its own.
"""

import argparse
import dataclasses
import json

ALGORITHMS = ("sac", "td3")

# SAC's are those of Haarnoja et al. 2018b, whose temperature is learned too, and TD3 differs from Fujimoto et al. 2018 by its learning
# rate alone: theirs is 1e-3. All have two critics and Adam; a step is followed by an update.
BATCH_SIZE = 256
DISCOUNT = 0.99
LEARNING_RATE = 3e-4
TARGET_RATE = 0.005
POLICY_DELAY = 2  # TD3's actor and targets move every so many updates.
EXPLORATION_NOISE, TARGET_NOISE, TARGET_NOISE_CLIP = 0.1, 0.2, 0.5  # TD3's, in halves of the range of an action.

# The clock starts after so many: by then whatever compiles has compiled.
UPDATES_BEFORE = 10


@dataclasses.dataclass(frozen=True)
class Task:
    """Learning starts once `start` steps are stored; that and the capacity are less than the papers', which changes no steady speed."""

    environment: str
    hidden: int  # Of each of two layers, ReLU, of the actor and of each critic.
    capacity: int
    start: int = 1_000


TASKS = {"halfcheetah": Task("HalfCheetah-v5", 256, 300_000), "pendulum": Task("Pendulum-v1", 64, 100_000)}


def options(description, algorithms=ALGORITHMS):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", choices=algorithms)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def report(peer, version, chosen, steps, updates, seconds):
    """Prints the result; `updates` are of BATCH_SIZE rows."""
    line = {"peer": peer, "version": version, "algorithm": chosen.algorithm, "environment": TASKS[chosen.task].environment,
            "threads": chosen.threads, "steps": steps, "seconds": round(seconds, 1), "steps_per_second": round(steps / seconds, 1),
            "updates_per_step": round(updates / steps, 2)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
