#!/usr/bin/env python3
"""Trains with the roles of a pipeline as processes, kills one of them (-9) every few seconds, and looks whether training reaches its rung.

    killed_roles.py [--program build/release/menger] [--recipe lunarlander_dqn] [--every 3] [--needed 200] [--seed 2] [--set KEY=VALUE ...]

Prints how often which role was killed, and the final greedy return; fails below `needed`, or where the run does not end by itself.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading

ROLES = ("collector", "inference", "learner", "replay")


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/menger")
    parser.add_argument("--recipe", default="lunarlander_dqn")
    parser.add_argument("--every", type=float, default=3, help="seconds between two kills")
    parser.add_argument("--needed", type=float, default=200, help="mean greedy return")
    parser.add_argument("--seed", type=int, default=2, help="of the run, and of who is killed")
    parser.add_argument("--set", action="append", default=["checkpoint.every=5000"], help="as menger train's")
    return parser.parse_args()


def children(process):
    """Process ids of the children of all its threads."""
    tasks = pathlib.Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def main():
    chosen = options()
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        settings = [part for setting in chosen.set for part in ("--set", setting)]
        command = [chosen.program, "train", chosen.recipe, "--seed", str(chosen.seed), "--out", str(run), "--set", "topology.kind=processes"]
        training = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(training.stdout))
        reader.start()
        draws = random.Random(chosen.seed)
        while True:
            try:
                training.wait(chosen.every)
                break
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError, IndexError):  # It ends, or has not begun.
                    os.kill(draws.choice(children(training.pid)), signal.SIGKILL)
        reader.join()
        died = [role for line in lines for role in re.findall(r"the (\w+)[ \d]* process has died", line)]
        print(", ".join(f"{role} {died.count(role)}" for role in ROLES), "killed")
        if training.returncode != 0:
            print(f"the run ended with {training.returncode}:\n{''.join(lines[-20:])}")
            return 1
        mean = json.loads((run / "summary.json").read_text())["evaluation"]["return_mean"]
    print(f"greedy return {mean:.1f}, needed {chosen.needed:g}")
    return 0 if mean >= chosen.needed and died else 1


if __name__ == "__main__":
    sys.exit(main())
