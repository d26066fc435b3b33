"""Kills or stops a replay server with a journal, its writers and its readers, at random moments; looks at what comes back.

    kill_server.py PROGRAM

MENGER_CRASH_RUNS says how often (default 40; try 1000), MENGER_CRASH_SEED with which seed. The server comes back at the same
socket, where writers and readers wait for it. After each of its deaths: every row is as it was written; nothing is there twice;
what was acknowledged and then told to be on the disk is there, and of what was acknowledged else only inserts of the last
`loss_max` may be lost; what was not acknowledged is there later. No reader ever sees a row that is none.
"""

import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

RUNS = int(os.environ.get("MENGER_CRASH_RUNS", 40))
SEED = int(os.environ.get("MENGER_CRASH_SEED", 1))
PATIENCE_S = 600
LOSS_MAX_S = 0.04  # As the program has it.
BATCH_MAX = 8
WRITERS = 3
READERS = 2


class Writer:
    """One stream: what its writer, perhaps dead, was told, and what it lost with servers."""

    def __init__(self, process, path):
        self.process = process
        self.path = path
        self.lost = set()

    def told(self, deaths):
        """([(number, began, returned)], how many steps were on the disk); `deaths` are when servers were killed, and when gone."""
        data = self.path.read_bytes() if self.path.exists() else b""
        records = list(struct.iter_unpack("<qqq", data[: len(data) // 24 * 24]))
        # By the server that had acknowledged them: none died meanwhile.
        of_one = (steps for steps, since, until in records if not any(since <= gone and killed <= until for killed, gone in deaths))
        synced = (-steps for steps in of_one if steps < 0)
        return [record for record in records if record[0] >= 0], max(synced, default=0)


class Crew:
    def __init__(self, program, place, chance):
        self.program, self.place, self.chance = program, place, chance
        self.folder, self.socket = place / "kept", place / "socket"
        self.started = 0
        self.deaths = []
        self.streams = {}
        self.readers = []
        self.lost = [0, 0.0]
        self.start_server()
        for _ in range(WRITERS):
            self.start_writer()
        for _ in range(READERS):
            self.start_reader()

    def start(self, *arguments):
        self.started += 1
        with open(self.place / f"errors.{self.started}", "w") as errors:  # Not a pipe, which would fill.
            process = subprocess.Popen([self.program, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=errors)
        process.errors = pathlib.Path(errors.name)
        return process

    def start_server(self):
        self.began_ns = time.monotonic_ns()
        self.server = self.start("serve", self.folder, self.socket)

    def start_writer(self):
        stream = len(self.streams) + 1
        path = self.place / f"told.{stream}"
        self.streams[stream] = Writer(self.start("write", self.socket, stream, path), path)

    def start_reader(self):
        self.readers.append(self.start("read", self.socket, self.chance.randrange(1 << 30)))

    def kill(self, process, what):
        process.send_signal(signal.SIGKILL)
        process.send_signal(signal.SIGCONT)
        process.wait(timeout=PATIENCE_S)
        if process.returncode != -signal.SIGKILL:
            self.complain(process, what)

    def complain(self, process, what):
        raise SystemExit(f"a {what} ended by itself, with {process.returncode}: {process.errors.read_text()[-2000:]}")

    def living(self):
        return [stream for stream, writer in self.streams.items() if writer.process]

    def look(self):
        """Nobody has ended by himself."""
        processes = [(self.server, "server"), *((reader, "reader") for reader in self.readers)]
        for process, what in processes + [(self.streams[stream].process, "writer") for stream in self.living()]:
            if process.poll() is not None:
                self.complain(process, what)

    def strike(self):
        """One death, of whoever it is; sometimes somebody is stopped for a while before."""
        time.sleep(self.chance.uniform(0.0, 0.3))
        self.look()
        if self.chance.random() < 0.2:
            anybody = [self.server, *self.readers, *(self.streams[stream].process for stream in self.living())]
            stopped = self.chance.choice(anybody)
            stopped.send_signal(signal.SIGSTOP)
            time.sleep(self.chance.uniform(0.0, 0.3))
            stopped.send_signal(signal.SIGCONT)
        fate = self.chance.random()
        if fate < 0.6:
            self.kill_server()
            self.start_server()
        elif fate < 0.8:
            stream = self.chance.choice(self.living())
            self.kill(self.streams[stream].process, "writer")
            self.streams[stream].process = None
            self.start_writer()
        else:
            self.kill(self.readers.pop(self.chance.randrange(len(self.readers))), "reader")
            self.start_reader()

    def kill_server(self):
        killed = time.monotonic_ns()
        self.kill(self.server, "server")
        self.deaths.append((killed, time.monotonic_ns()))
        self.check()

    def check(self):
        """The server is dead; those who are told anything were told it before."""
        check = subprocess.run([self.program, "check", self.folder], capture_output=True, text=True, timeout=PATIENCE_S)
        if check.returncode != 0:
            raise SystemExit(f"cannot recover: {check.stderr}")
        lines = [line.split() for line in check.stdout.splitlines()]
        inserts = int(lines[0][2])
        found = {int(line[1]): (int(line[2]), int(line[3]), set(map(int, line[4:]))) for line in lines[1:]}
        lost = []
        attempted = 0
        for stream, writer in self.streams.items():
            acknowledged, synced = writer.told(self.deaths)
            attempted += (acknowledged[-1][0] + 1 if acknowledged else 0) + BATCH_MAX
            if stream not in found:
                continue  # Nothing yet, or long ago.
            first, last, missing = found[stream]
            if last + 1 < synced:
                raise SystemExit(f"stream {stream} ends with {last}; all up to {synced} was on the disk")
            # What a server before this one had acknowledged may have been written down after we had looked.
            writer.lost.update(number for number, _, returned in acknowledged if number in missing and returned < self.began_ns)
            if not missing <= writer.lost:
                raise SystemExit(f"of stream {stream} are missing {sorted(missing - writer.lost)[:20]}, which were never lost")
            new = [record for record in acknowledged if record[0] > last and record[0] not in writer.lost]
            lost += new
            writer.lost.update(record[0] for record in new)
        if inserts > attempted:
            raise SystemExit(f"{inserts} inserts of {attempted} at most: some are there twice")
        self.check_loss(lost)
        self.inserts = inserts

    def check_loss(self, lost):
        if not lost:
            return
        span_s = (max(began for _, began, _ in lost) - min(returned for _, _, returned in lost)) * 1e-9
        if span_s > LOSS_MAX_S:
            raise SystemExit(f"{len(lost)} acknowledged inserts of {span_s:.3f} s are lost: more than {LOSS_MAX_S} s")
        self.lost = [max(self.lost[0], len(lost)), max(self.lost[1], span_s)]

    def end(self):
        for reader in self.readers:
            self.kill(reader, "reader")
        for stream in self.living():
            self.kill(self.streams[stream].process, "writer")
        self.kill_server()


def main():
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name:
        crew = Crew(sys.argv[1], pathlib.Path(name), chance)
        try:
            for run in range(RUNS):
                crew.strike()
            time.sleep(0.5)
            crew.end()
        finally:
            everybody = [crew.server, *crew.readers, *(writer.process for writer in crew.streams.values() if writer.process)]
            for process in everybody:
                process.kill()
                process.send_signal(signal.SIGCONT)
                process.wait()
    print(f"{RUNS} kills of servers, writers and readers: {crew.inserts} inserts of {len(crew.streams)} streams, no corrupt recovery, "
          f"nothing twice, no row that is none; lost at most {crew.lost[0]} acknowledged inserts of {crew.lost[1]:.3f} s")  # fmt: skip
    if crew.inserts == 0:
        raise SystemExit("nothing was ever inserted")


if __name__ == "__main__":
    main()
