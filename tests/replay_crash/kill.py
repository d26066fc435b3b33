"""Kills a process that makes replay checkpoints, at random moments, and looks at what can be recovered.

    kill.py PROGRAM

MENGER_CRASH_RUNS says how often (default 25; try 1000), MENGER_CRASH_SEED with which seed. After each kill, what was on its way
to the disk may be lost: files of a checkpoint that had not taken its name yet are cut at random, or get a tail of garbage. It
must not matter: every item is as it was written, and none is lost that a checkpoint had acknowledged.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

RUNS = int(os.environ.get("MENGER_CRASH_RUNS", 25))
SEED = int(os.environ.get("MENGER_CRASH_SEED", 1))
PATIENCE_S = 60


def spoil_unfinished(folder, chance):
    """Changes files that no fsync before a rename has promised; returns how many."""
    spoiled = 0
    for path in sorted(folder.glob("*.partial/**/*")):
        if not path.is_file() or path.stat().st_nlink > 1 or chance.random() < 0.3:
            continue
        size = path.stat().st_size
        with open(path, "r+b") as file:
            file.truncate(chance.randint(0, size))
            if chance.random() < 0.5:
                file.seek(0, os.SEEK_END)
                file.write(chance.randbytes(chance.randint(1, 4096)))
        spoiled += 1
    return spoiled


def run_once(program, folder, seed, chance):
    """Returns (inserts acknowledged, inserts recovered, files spoiled)."""
    writer = subprocess.Popen([program, "write", folder, str(seed)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(chance.uniform(0.0, 0.25))
    writer.send_signal(signal.SIGKILL)
    output, errors = writer.communicate(timeout=PATIENCE_S)
    if writer.returncode != -signal.SIGKILL:
        raise SystemExit(f"run {seed}: the writer ended by itself, with {writer.returncode}: {errors}")
    acknowledged = [int(line.split()[1]) for line in output.splitlines(keepends=True) if line.endswith("\n")]
    spoiled = spoil_unfinished(folder, chance)
    check = subprocess.run([program, "check", folder], capture_output=True, text=True, timeout=PATIENCE_S)
    if check.returncode != 0:
        raise SystemExit(f"run {seed}: cannot recover: {check.stderr}")
    return max(acknowledged, default=0), int(check.stdout.split()[1]), spoiled


def main():
    program = sys.argv[1]
    chance = random.Random(SEED)
    recovered_before = spoiled = unfinished = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for run in range(RUNS):
            acknowledged, recovered, changed = run_once(program, folder, SEED * 1_000_000 + run, chance)
            needed = max(acknowledged, recovered_before)
            if recovered < needed:
                raise SystemExit(f"run {run} of seed {SEED}: {needed} inserts were acknowledged, {recovered} recovered")
            recovered_before = recovered
            spoiled += changed
            unfinished += changed > 0
    print(f"{RUNS} kills, {unfinished} of them in the middle of a checkpoint ({spoiled} files spoiled), "
          f"{recovered_before} inserts, none lost, no corrupt recovery")
    if recovered_before == 0:
        raise SystemExit("nothing was ever written")


if __name__ == "__main__":
    main()
