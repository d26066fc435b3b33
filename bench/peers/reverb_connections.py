#!/usr/bin/env python3
"""dm-reverb: how long an insert with its flush takes where N writers are connected, at half the rate that 16 reach as fast as they can.

    reverb_connections.py PAYLOAD [--writers 16 2048] [--seconds 2]

PAYLOAD is 16kB or 1MB, one step an item, incompressible bytes. The server in a process of its own, over localhost. As
bench_replay_served does, 16 threads, whatever N is, step through N / 16 writers each and pause between two inserts; in four processes,
since threads of one take turns in Python. A line "RESULT " and a JSON object for each N.
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import socket
import threading
import time

PROCESSES, THREADS = 4, 4  # And threads of each.
PAYLOADS = {"16kB": (16_000, 20_000), "1MB": (1_000_000, 500)}  # Bytes, and items of the table.


def serve(port, payload, ready, stop):
    import reverb
    import tensorflow as tf

    size, max_size = PAYLOADS[payload]
    table = reverb.Table("items", sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(), max_size=max_size,
                         rate_limiter=reverb.rate_limiters.MinSize(1),
                         signature={"data": tf.TensorSpec((1, size), tf.uint8)})  # fmt: skip
    server = reverb.Server(port=port, tables=[table])
    ready.set()
    stop.wait()
    server.stop()


def write(port, payload, writers, rate, seconds, barrier, results):
    """`writers` connections of this process, used by THREADS threads; `rate` of all processes, 0: as fast as they can."""
    import numpy as np
    import reverb

    data = np.random.default_rng(0).integers(0, 255, PAYLOADS[payload][0], dtype=np.uint8)
    mine = [reverb.Client(f"localhost:{port}").trajectory_writer(num_keep_alive_refs=1) for _ in range(writers)]

    def insert(writer):
        writer.append({"data": data})
        writer.create_item("items", 1.0, {"data": writer.history["data"][-1:]})
        writer.flush()

    for writer in mine:
        insert(writer)
    times = [[] for _ in range(THREADS)]
    barrier.wait()
    start = time.perf_counter()

    def work(index):
        at, due, pause = index, start, PROCESSES * THREADS / rate if rate else 0.0
        while (now := time.perf_counter()) - start < seconds:
            if due > now:
                time.sleep(due - now)
            begin = time.perf_counter()
            insert(mine[at])
            times[index].append(time.perf_counter() - begin)
            at = (at + THREADS) % len(mine)
            due = due + pause if rate else 0.0

    threads = [threading.Thread(target=work, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put([each for own in times for each in own])
    barrier.wait()  # Nobody hangs up while others measure.


def measure(processes, port, payload, writers, rate, seconds):
    """Seconds of each insert, sorted."""
    barrier, results = processes.Barrier(PROCESSES), processes.Queue()
    running = [processes.Process(target=write, args=(port, payload, writers // PROCESSES, rate, seconds, barrier, results))
               for _ in range(PROCESSES)]  # fmt: skip
    for process in running:
        process.start()
    times = sorted(each for _ in running for each in results.get(timeout=240))
    for process in running:
        process.join(10)
        process.kill()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("payload", choices=list(PAYLOADS))
    parser.add_argument("--writers", nargs="*", type=int, default=[16, 2048])
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = multiprocessing.get_context("spawn")
    ready, stop = processes.Event(), processes.Event()
    server = processes.Process(target=serve, args=(port, options.payload, ready, stop), daemon=True)
    server.start()
    if not ready.wait(60):
        raise SystemExit("the server had not started after 60 s")
    rate = len(measure(processes, port, options.payload, PROCESSES * THREADS, 0, options.seconds)) / options.seconds / 2
    for writers in options.writers:
        times = measure(processes, port, options.payload, writers, rate, 2 * options.seconds)
        line = {"peer": "reverb", "version": importlib.metadata.version("dm-reverb"), "part": "connections", "payload": options.payload,
                "transport": "dm-reverb, gRPC", "writers": writers, "rate": round(rate), "reached": round(len(times) / (2 * options.seconds)),
                "p50_us": round(times[len(times) // 2] * 1e6, 1), "p99_us": round(times[len(times) * 99 // 100] * 1e6, 1)}  # fmt: skip
        print("RESULT", json.dumps(line), flush=True)
    stop.set()
    server.join(10)
    server.kill()


if __name__ == "__main__":
    main()
