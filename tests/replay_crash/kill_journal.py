"""Kills a process that journals a replay store, at random moments, and looks at what can be recovered.

    kill_journal.py PROGRAM

MENGER_CRASH_RUNS says how often (default 24; try 1000), MENGER_CRASH_SEED with which seed. A store of plain chunks and one that
has room only for compressed ones take turns, each with one writer or four at once. Every second time the machine loses its power
too: of each file, what no fsync had brought to the disk is cut off, zeroed or garbled at random, page by page, and names that no
fsync of their folder had kept are lost. It must not matter: every row of every item is as it was written, no item is missing
between two others, none is that was recovered before, and those that had been acknowledged and are gone were acknowledged within
one span of LOSS_MAX_S.
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

RUNS = int(os.environ.get("MENGER_CRASH_RUNS", 24))
SEED = int(os.environ.get("MENGER_CRASH_SEED", 1))
LOSS_MAX_S = 0.04  # As journal_crash.cc has it.
PATIENCE_S = 60
PAGE = 4096
WRITERS_MAX = 8  # As journal_crash.cc has it.
KINDS = ["plain", "compressed"]


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
    """(number, began, returned) of the inserts that a writer acknowledged."""
    data = path.read_bytes() if path.exists() else b""
    return list(struct.iter_unpack("<qqq", data[: len(data) // 24 * 24]))


def check_loss(lost, killed_ns):
    """Returns (inserts lost, the age of the oldest in seconds)."""
    if not lost:
        return 0, 0.0
    # Each counted at a moment between its begin and its return, which must all lie within the span.
    span_s = (max(began for _, began, _ in lost) - min(returned for _, _, returned in lost)) * 1e-9
    if span_s > LOSS_MAX_S:
        raise SystemExit(f"{len(lost)} acknowledged inserts of {span_s:.3f} s are lost: more than {LOSS_MAX_S} s")
    return len(lost), (killed_ns - min(returned for _, _, returned in lost)) * 1e-9


class Kept:
    """A folder in which processes, one after the other, keep a store; and what was recovered from it so far."""

    def __init__(self, program, kind, place):
        self.program = program
        self.kind = kind
        self.folder = place / kind / "kept"
        self.folder.mkdir(parents=True)
        self.disk = Disk(self.folder, place / kind / "synced")
        self.acks = place / kind / "acknowledged"
        self.inserts = [0, 0]  # Recovered, by table.
        self.ends = {}  # The last step of each stream.

    def run(self, life, writers, power_fails, chance):
        """Returns (inserts acknowledged, lost, age of the oldest lost in seconds, files spoiled)."""
        paths = [self.acks.with_name(f"{self.acks.name}.{writer}") for writer in range(writers)]
        for path in paths:
            path.unlink(missing_ok=True)
        command = [self.program, "write", self.folder, self.kind, str(life), str(writers), self.acks, self.disk.log]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(chance.uniform(0.0, 0.4))
        killed_ns = time.monotonic_ns()
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE_S)
        if process.returncode != -signal.SIGKILL:
            raise SystemExit(f"life {life}: the writer ended by itself, with {process.returncode}: {errors}")
        spoiled = self.disk.lose_power(chance) if power_fails else 0
        told = {life * WRITERS_MAX + writer: acknowledged(path) for writer, path in enumerate(paths)}
        lost = self.check(told, life)
        return sum(map(len, told.values())), *check_loss(lost, killed_ns), spoiled

    def check(self, told, life):
        """Returns what was acknowledged and is lost; `told` is what was, by stream."""
        command = [self.program, "check", self.folder, self.kind]
        check = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        if check.returncode != 0:
            raise SystemExit(f"life {life}: cannot recover: {check.stderr}")
        self.disk.keep_all()  # The check has synced what it made, and ended the journal.
        lines = [line.split() for line in check.stdout.splitlines()]
        inserts = [int(count) for count in lines[0][1:]]
        ends = {int(line[1]): int(line[3]) for line in lines[1:]}
        for stream, end in ends.items():
            if stream not in told and self.ends.get(stream) != end:
                raise SystemExit(f"life {life}: stream {stream} ended with {self.ends.get(stream)}, and now with {end}")
        # What of this life was inserted into streams of which nothing is left in the full table.
        gone = inserts[1] - self.inserts[1] - sum(ends[stream] + 1 for stream in told if stream in ends)
        between = inserts[0] - self.inserts[0] - (inserts[1] - self.inserts[1])  # The tables.
        if gone < 0 or not 0 <= between <= len(told):
            raise SystemExit(f"life {life}: {inserts} inserts after {self.inserts}, of which {ends} are left")
        lost = [insert for stream in told if stream in ends for insert in told[stream] if insert[0] > ends[stream]]
        of_gone = sorted((insert for stream in told if stream not in ends for insert in told[stream]), key=lambda i: i[2])
        self.inserts = inserts
        self.ends = ends
        return lost + of_gone[gone:]


def main():
    program = sys.argv[1]
    chance = random.Random(SEED)
    inserts = spoiled = 0
    lost = {False: [0, 0.0], True: [0, 0.0]}  # By whether the power failed: inserts at most, and their age.
    with tempfile.TemporaryDirectory() as name:
        kept = [Kept(program, kind, pathlib.Path(name)) for kind in KINDS]
        for run in range(RUNS):
            power_fails = run % 4 >= 2
            writers = 4 if run % 8 >= 4 else 1
            count, missing, age_s, files = kept[run % 2].run(SEED * 1_000_000 + run, writers, power_fails, chance)
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
