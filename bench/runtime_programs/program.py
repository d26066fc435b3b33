"""What the programs of this folder share: each runs on menger.runtime or on Ray, from the same source.

A program is a function `run(ray)`. It warms up, does its work between `clock()` and its end, compares what it got with what it must be, and gives
a dict of what it measured: `seconds`, and `bare_seconds` where bytes decide. What workers do stays in the programs' own
files: those travel with the calls.
"""

import argparse
import importlib
import json
import pathlib
import sys
import time

clock = time.perf_counter


def best(do, times=5):
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        begin = clock()
        do()
        seconds.append(clock() - begin)
    return min(seconds)


def main(run, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=["ray", "menger.runtime"], default="menger.runtime")
    parser.add_argument("--cpus", type=int, default=2)
    options = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    ray = importlib.import_module(options.package)
    ray.init(num_cpus=options.cpus, include_dashboard=False, log_to_driver=False)
    about = {"program": pathlib.Path(sys.argv[0]).stem, "package": options.package}
    print("RESULT", json.dumps(about | run(ray)), flush=True)
    ray.shutdown()
