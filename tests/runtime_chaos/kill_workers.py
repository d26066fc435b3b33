"""Kills workers of a program at random moments while it computes something known; then the driver itself.

    kill_workers.py PROGRAM

MENGER_CHAOS_SECONDS says how long (default 6; try 300), MENGER_CHAOS_SEED with which seed. The program, which kills workers of its own
as well, must get the right results however many die, and neither a process nor a descriptor may remain; of a driver that is killed, no
process and nothing in /dev/shm.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

SECONDS = float(os.environ.get("MENGER_CHAOS_SECONDS", 6))
SEED = int(os.environ.get("MENGER_CHAOS_SEED", 1))
STRIKES = 4  # Of 1000 calls, that kill their own process.
DRIVER_KILLS = max(5, int(SECONDS / 4))
PATIENCE_S = 120


def processes_of(program):
    """Those that run it, the driver and its workers, but none that is gone and not yet fetched."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/exe"):
        try:
            if os.path.samefile(path, program):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def shared_memory():
    return set(os.listdir("/dev/shm"))


def start(program, seed, seconds, strikes):
    driver = subprocess.Popen([program, str(seed), str(seconds), str(strikes)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if driver.stdout.readline() != "started\n":
        raise SystemExit(f"seed {seed}: the program did not start: {driver.communicate()}")
    return driver


def expect_nothing_left(program, what):
    deadline = time.monotonic() + 10
    while processes_of(program):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: processes {processes_of(program)} remain")
        time.sleep(0.01)


def kill_workers(program, chance):
    """Returns how many, and what the program said."""
    driver = start(program, SEED, SECONDS, STRIKES)
    end, kills = time.monotonic() + SECONDS, 0
    while time.monotonic() < end and driver.poll() is None:
        time.sleep(chance.expovariate(20))
        workers = [process for process in processes_of(program) if process != driver.pid]
        if workers:
            try:
                os.kill(chance.choice(workers), signal.SIGKILL)
                kills += 1
            except ProcessLookupError:
                continue
    try:
        output, errors = driver.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        driver.kill()
        raise SystemExit(f"seed {SEED}: the program hung; it said {driver.communicate()}") from None
    if driver.returncode != 0:
        raise SystemExit(f"seed {SEED}: ended with {driver.returncode}: {output} {errors[-2000:]}")
    expect_nothing_left(program, f"seed {SEED}")
    return kills, output.strip()


def kill_drivers(program, chance):
    before = shared_memory()
    for _ in range(DRIVER_KILLS):
        seed = chance.randrange(2**31)
        driver = start(program, seed, 3600, 0)
        time.sleep(chance.uniform(0, 0.2))
        driver.kill()
        expect_nothing_left(program, f"driver of seed {seed}, killed")
        driver.communicate()
    left = shared_memory() - before
    if left:
        raise SystemExit(f"killed drivers left {left} in /dev/shm")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    chance = random.Random(SEED)
    kills, said = kill_workers(program, chance)
    print(f"{said}; {kills} workers killed from outside")
    kill_drivers(program, chance)
    print(f"{DRIVER_KILLS} drivers killed, nothing left")


if __name__ == "__main__":
    main()
