"""A call now and then from Python, on nodes that have done nothing for a while, as a RESULT line: Ray's cluster, or Menger's that
MENGER_ADDRESS names.

    pauses.py [--package ray|menger.runtime] [--nodes N] [--pause-ms P] [--calls C]
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import time


def join(package, nodes):
    if package == "ray":
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": 10**9}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        for _ in range(nodes - 1):
            cluster.add_node(**node)
        address = cluster.address
    else:
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
        address = os.environ["MENGER_ADDRESS"]
    runtime = importlib.import_module(package)
    runtime.init(address=address, log_to_driver=False)
    return runtime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", choices=["ray", "menger.runtime"], default="ray")
    parser.add_argument("--nodes", type=int, default=2, help="of Ray's cluster, of 1 CPU each")
    parser.add_argument("--pause-ms", type=float, default=20)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    runtime = join(options.package, options.nodes)

    @runtime.remote
    def nothing():
        return 1

    runtime.get(nothing.remote())
    took = []
    for _ in range(options.calls):
        time.sleep(options.pause_ms / 1e3)
        begin = time.perf_counter()
        runtime.get(nothing.remote())
        took.append((time.perf_counter() - begin) * 1e6)
    took.sort()
    row = {"pause_ms": options.pause_ms, "median_us": round(statistics.median(took)), "p90_us": round(took[len(took) * 9 // 10])}
    print("RESULT " + json.dumps(row), flush=True)
    runtime.shutdown()


if __name__ == "__main__":
    main()
