"""Kills a process that journals a replay store, at random moments, and looks at what can be recovered.

    kill_journal.py PROGRAM

MENGER_CRASH_RUNS says how often (default 20; try 1000), MENGER_CRASH_SEED with which seed. Every second time the machine loses
its power too: of each file, what no fsync had brought to the disk is cut off, zeroed or garbled at random, page by page, and
names that no fsync of their folder had kept are lost. It must not matter: every item is as it was written, and those that had
been acknowledged and are gone were acknowledged within one span of LOSS_MAX_S.
"""

import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

RUNS = int(os.environ.get("MENGER_CRASH_RUNS", 20))
SEED = int(os.environ.get("MENGER_CRASH_SEED", 1))
LOSS_MAX_S = 0.04  # As journal_crash.cc has it.
PATIENCE_S = 60
PAGE = 4096


class Disk:
    """What of a folder would be there after the power went."""

    def __init__(self, folder, log):
        self.folder = folder
        self.log = log
        self.keep_all()

    def keep_all(self):
        self.log.write_text("")
        self.sizes = {path.stat().st_ino: path.stat().st_size for path in self.folder.glob("**/*") if path.is_file()}
        self.names = {path.name for path in self.folder.iterdir()}

    def read_log(self):
        for line in self.log.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            kind, inode, *rest = line.split()
            if kind == "file":
                self.sizes[int(inode)] = int(rest[0])
            elif int(inode) == self.folder.stat().st_ino:
                self.names = set(rest)

    def lose_power(self, chance):
        """Returns how many files changed or went."""
        self.read_log()
        changed = 0
        for path in sorted(self.folder.iterdir()):
            if path.name in self.names or chance.random() < 0.5:
                continue
            changed += 1
            if path.is_file():
                path.unlink()
            elif not path.name.endswith(".partial"):
                shutil.rmtree(path.with_name(path.name + ".partial"), ignore_errors=True)
                path.rename(path.with_name(path.name + ".partial"))
        for path in sorted(self.folder.glob("**/*")):
            if path.is_file():
                changed += self.spoil(path, chance)
        self.keep_all()
        return changed

    def spoil(self, path, chance):
        kept = min(self.sizes.get(path.stat().st_ino, 0), path.stat().st_size)
        if kept == path.stat().st_size:
            return False
        size = chance.choice([path.stat().st_size, chance.randint(kept, path.stat().st_size)])
        with open(path, "r+b") as file:
            file.truncate(size)
            for page in range(kept // PAGE, (size + PAGE - 1) // PAGE):
                begin = max(kept, page * PAGE)
                count = min(size, (page + 1) * PAGE) - begin
                file.seek(begin)
                fate = chance.random()
                if fate < 0.2:
                    file.write(bytes(count))
                elif fate < 0.3:
                    file.write(chance.randbytes(count))
        return True


def acknowledged(path):
    """(number, began, returned) of the inserts that a process acknowledged."""
    data = path.read_bytes() if path.exists() else b""
    return list(struct.iter_unpack("<qqq", data[: len(data) // 24 * 24]))


def check_loss(inserts, recovered, killed_ns):
    """Returns (inserts lost, the age of the oldest in seconds)."""
    lost = [insert for insert in inserts if insert[0] > recovered]
    if not lost:
        return 0, 0.0
    # Each counted at a moment between its begin and its return, which must all lie within the span.
    span_s = (max(began for _, began, _ in lost) - min(returned for _, _, returned in lost)) * 1e-9
    if span_s > LOSS_MAX_S:
        raise SystemExit(f"{len(lost)} acknowledged inserts of {span_s:.3f} s are lost: more than {LOSS_MAX_S} s")
    return len(lost), (killed_ns - min(returned for _, _, returned in lost)) * 1e-9


def run_once(program, folder, seed, disk, power_fails, chance):
    """Returns (inserts acknowledged, recovered in all, lost, age of the oldest lost in seconds, files spoiled)."""
    acks = folder.parent / "acknowledged"
    acks.unlink(missing_ok=True)
    command = [program, "write", folder, str(seed), acks, disk.log]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(chance.uniform(0.0, 0.4))
    killed_ns = time.monotonic_ns()
    writer.send_signal(signal.SIGKILL)
    _, errors = writer.communicate(timeout=PATIENCE_S)
    if writer.returncode != -signal.SIGKILL:
        raise SystemExit(f"run {seed}: the writer ended by itself, with {writer.returncode}: {errors}")
    spoiled = disk.lose_power(chance) if power_fails else 0
    inserts = acknowledged(acks)
    check = subprocess.run([program, "check", folder], capture_output=True, text=True, timeout=PATIENCE_S)
    if check.returncode != 0:
        raise SystemExit(f"run {seed}: cannot recover: {check.stderr}")
    disk.keep_all()  # The check has synced what it made, and ended the journal.
    recovered = int(check.stdout.split()[1])
    return len(inserts), recovered, *check_loss(inserts, recovered, killed_ns), spoiled


def main():
    program = sys.argv[1]
    chance = random.Random(SEED)
    before = inserts = 0
    lost = {False: [0, 0.0], True: [0, 0.0]}  # By whether the power failed: inserts at most, and their age.
    spoiled = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "kept"
        folder.mkdir()
        disk = Disk(folder, pathlib.Path(name) / "synced")
        for run in range(RUNS):
            power_fails = run % 2 == 1
            count, recovered, missing, age_s, files = run_once(program, folder, SEED * 1_000_000 + run, disk, power_fails, chance)
            if recovered < before:
                raise SystemExit(f"run {run} of seed {SEED}: {before} inserts were recovered before, now {recovered}")
            before = recovered
            inserts += count
            spoiled += files
            lost[power_fails] = [max(lost[power_fails][0], missing), max(lost[power_fails][1], age_s)]
    print(f"{RUNS} kills, every second one with a loss of power ({spoiled} files spoiled): {inserts} inserts, no corrupt recovery")
    print(f"lost at most: {lost[False][0]} inserts of the last {lost[False][1]:.3f} s by a kill, "
          f"{lost[True][0]} of {lost[True][1]:.3f} s with the power")
    if inserts == 0:
        raise SystemExit("nothing was ever inserted")


if __name__ == "__main__":
    main()
