"""Clients that come to a replay server and go, in all sorts of ways: its memory, descriptors and threads stay as they are.

    come_and_go.py PROGRAM

MENGER_VISIT_SECONDS says for how long (default 8; try 300). Visitors come in four spells, and after each the server is looked at
once all have gone: what it has after the first is what it may have after the last, but for what tables remember of each writer
(InsertStreams::kStreamBytes, up to 65,536 of them). With ThreadSanitizer only descriptors and threads are judged: it keeps some
5 KB of shadow memory for every visit, which is no memory of the server.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

SECONDS = float(os.environ.get("MENGER_VISIT_SECONDS", 8))
SPELLS = 4
VISITORS = 3
PATIENCE_S = 60
STREAM_BYTES = 2 * 96  # A writer inserts into both tables.
STREAMS_MAX = 65_536
ITEMS_MAX = 20_000  # Of a table, as the program has it.
SLACK_BYTES = 12 << 20  # Two checkpoints of the tables that may be on their way, and what an allocator keeps.
# AddressSanitizer keeps what was freed, up to 256 MiB of it: here that would hide what grows, or look like it.
SANITIZER = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:thread_local_quarantine_size_kb=16"


def fields(process):
    lines = pathlib.Path(f"/proc/{process}/status").read_text().splitlines()
    return {line.split(":")[0]: line.split()[1] for line in lines if line.split()[1:]}


def look(process):
    """(bytes of its own, descriptors, threads)"""
    status = fields(process)
    return int(status["RssAnon"]) * 1024, len(os.listdir(f"/proc/{process}/fd")), int(status["Threads"])


def quiet(process):
    """What the server has when nobody is there: the least of a while, for those who went are not gone at once."""
    best, end = look(process), time.monotonic() + 3
    while time.monotonic() < end:
        now = look(process)
        best = tuple(map(min, best, now))
        time.sleep(0.05)
    return best


def spell(program, socket, number):
    """Visits of all visitors."""
    visitors = [subprocess.Popen([program, "visit", socket, str(SECONDS / SPELLS), str(number * VISITORS + index + 1)],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                for index in range(VISITORS)]  # fmt: skip
    visits = 0
    for visitor in visitors:
        output, _ = visitor.communicate(timeout=PATIENCE_S + SECONDS)
        if visitor.returncode != 0:
            raise SystemExit(f"a visitor ended with {visitor.returncode}")
        visits += int(output.split()[1])
    return visits


def fill(program, place):
    """Tables grow until they are full."""
    told = place / "told"
    writer = subprocess.Popen([program, "write", place / "socket", "1", told], stderr=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_S
    while not told.exists() or told.stat().st_size < 24 * ITEMS_MAX:
        if writer.poll() is not None or time.monotonic() > end:
            raise SystemExit("the tables were not filled")
        time.sleep(0.05)
    writer.kill()
    writer.wait()


def counts_shadow_memory(program):
    return b"__tsan_init" in pathlib.Path(program).read_bytes()


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        socket = pathlib.Path(name) / "socket"
        server = subprocess.Popen([program, "serve", pathlib.Path(name) / "kept", socket], stderr=subprocess.DEVNULL,
                                  env=os.environ | {"ASAN_OPTIONS": SANITIZER})  # fmt: skip
        try:
            fill(program, pathlib.Path(name))
            visits = spell(program, socket, 0)
            first = quiet(server.pid)
            more = sum(spell(program, socket, number) for number in range(1, SPELLS))
            last = quiet(server.pid)
        finally:
            server.kill()
            server.wait()
    print(f"{visits} visits, then {more} more: {first[0] / 2**20:.1f} and {last[0] / 2**20:.1f} MiB, "
          f"{first[1]} and {last[1]} descriptors, {first[2]} and {last[2]} threads")  # fmt: skip
    allowed = SLACK_BYTES + STREAM_BYTES * min(more, STREAMS_MAX)
    if last[0] > first[0] + allowed and not counts_shadow_memory(program):
        raise SystemExit("the server's memory grows with its visitors")
    if last[1] > first[1] + 2 or last[2] > first[2]:
        raise SystemExit("the server keeps descriptors or threads of visitors who have gone")


if __name__ == "__main__":
    main()
