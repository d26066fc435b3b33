"""A run that goes on has flat memory, and leaves no process, descriptor or shared segment behind: not while hosts die and are
replaced, evaluations start environments of their own, and checkpoints come and go.

MENGER_LONG_RUN_SECONDS says how long it looks on (default 40; try 3600).
"""

import os
import pathlib
import signal
import statistics
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "end_to_end"))
from program import PATIENCE_S, ProgramTest  # noqa: E402

SECONDS = float(os.environ.get("MENGER_LONG_RUN_SECONDS", 40))
GROWTH_MIB = 4  # What medians of two thirds of the time may differ by; one slab or checkpoint that leaks is found sooner.


def children_of(process):
    """{number: state} of a process's children."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended meanwhile.
        if int(fields[1]) == process:
            found[int(path.name)] = fields[0]
    return found


def resident_mib(process):
    try:
        return int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


class LongRunTest(ProgramTest):
    def look(self, process):
        """One look at the run: resident MiB of menger and of its largest child, descriptors, children."""
        children = children_of(process.pid)
        return {"own": resident_mib(process.pid), "host": max(map(resident_mib, children), default=0.0),
                "descriptors": len(os.listdir(f"/proc/{process.pid}/fd")), "children": children}  # fmt: skip

    def test_memory_is_flat_and_nothing_is_left(self):
        process = self.start("train", "quick.toml", "--out", "run", "--set", "environment=host:CartPole-v1", "--set",
                             f"host.python={sys.executable}", "--set", "steps=1000000000", "--set", "collector.workers=2",
                             "--set", "collector.kind=synchronous", "--set", "collector.on_environment_error=restart",
                             "--set", "evaluation.every=20000", "--set", "checkpoint.every=5000",
                             "--set", "progress.every=5000")  # fmt: skip
        self.wait_for_checkpoint(process, "run", beyond=1)
        looks, kills, start = [], 0, time.monotonic()
        while time.monotonic() - start < SECONDS:
            time.sleep(SECONDS / 400)
            self.assertIsNone(process.poll(), process.poll() is not None and process.communicate()[1][-2000:])
            looks.append(self.look(process))
            if kills < 10 and len(looks) % 40 == 20:
                hosts = [child for child, state in looks[-1]["children"].items() if state != "Z"]
                if hosts:
                    os.kill(hosts[0], signal.SIGKILL)
                    kills += 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, errors[-2000:])
        self.assertGreater(kills, 5)

        third = len(looks) // 3
        for what in ("own", "host", "descriptors"):
            before, after = (statistics.median(look[what] for look in part) for part in (looks[third : 2 * third], looks[2 * third :]))
            self.assertLess(after - before, GROWTH_MIB, f"{what} grew from {before:.1f} to {after:.1f}")
        zombies = sum("Z" in look["children"].values() for look in looks)
        self.assertLess(zombies, len(looks) // 10, "dead hosts are not waited for")
        for child in looks[-1]["children"]:
            self.assertFalse(pathlib.Path(f"/proc/{child}").exists(), "a host outlived the run")


try:
    import gymnasium  # noqa: F401
except ImportError:
    LongRunTest = unittest.skip("no gymnasium in this interpreter")(LongRunTest)

if __name__ == "__main__":
    unittest.main()
