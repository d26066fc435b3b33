"""Ray: rows of its own `ray microbenchmark`, as RESULT lines.

    ray_microbenchmark.py [--rows TEXT...] [--warm-up S] [--nodes N --cpus C --store-bytes B]

Its rows are timed by Ray's own functions; --warm-up is the pause before each, 10 s there. With --nodes they run on a cluster of so
many nodes of this machine (ray.cluster_utils.Cluster), of which the driver is none.
"""

import argparse
import json
import time

import ray
from ray._private import ray_perf

original = ray_perf.timeit


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="*", default=[], help="only rows whose name contains one of these")
    parser.add_argument("--warm-up", type=float, default=1, help="seconds of rest before each row")
    parser.add_argument("--nodes", type=int, default=0, help="0: Ray's own default, one node with all CPUs")
    parser.add_argument("--cpus", type=int, default=1, help="of each node")
    parser.add_argument("--store-bytes", type=int, default=10**9, help="of each node")
    options = parser.parse_args()
    if options.nodes:
        from ray.cluster_utils import Cluster

        node = {"num_cpus": options.cpus, "object_store_memory": options.store_bytes}
        # Its rows ask for a "custom" resource of the node that they begin.
        cluster = Cluster(initialize_head=True, head_node_args=node | {"resources": {"custom": 100}})
        for _ in range(options.nodes - 1):
            cluster.add_node(**node)
        begin = ray.init
        ray.init = lambda **_: begin(address=cluster.address)

    def timeit(name, function, multiplier=1, warmup_time_sec=0):
        if options.rows and not any(text in name for text in options.rows):
            return [None]
        begin = time.perf_counter()
        results = original(name, function, multiplier, options.warm_up)
        for _, mean, deviation in results:
            row = {"name": name, "per_second": mean, "deviation": deviation, "seconds": round(time.perf_counter() - begin, 1)}
            print("RESULT " + json.dumps(row), flush=True)
        return results

    ray_perf.timeit = timeit
    # Of the Ray client, a driver over a network connection: nothing of ours is like it.
    ray_perf.client_microbenchmark_main = lambda results: results
    ray_perf.main()


if __name__ == "__main__":
    main()
