#!/usr/bin/env python3
"""dm-reverb: items inserted and sampled a second by one client over localhost, the server in a process of its own.

    reverb_replay.py PAYLOAD SAMPLER [--seconds 3]

PAYLOAD is 400B, 40kB or 1MB, SAMPLER uniform, prioritised or queue. One step an item, incompressible bytes. Inserts through a TrajectoryWriter
that is flushed every 256 items; samples in batches of 256 through a TrajectoryDataset, its fastest way; of a queue of 1,024 items both at once,
by two threads. One line, "RESULT " and a JSON object.
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import socket
import threading
import time

BATCH, QUEUE = 256, 1024
PAYLOADS = {"400B": (400, 100_000), "40kB": (40_000, 20_000), "1MB": (1_000_000, 1_200)}  # Bytes, and items of the table.


def serve(port, payload, sampler, ready, stop):
    import reverb
    import tensorflow as tf

    size, max_size = PAYLOADS[payload]
    signature = {"data": tf.TensorSpec((1, size), tf.uint8)}
    selector = reverb.selectors.Prioritized(0.6) if sampler == "prioritised" else reverb.selectors.Uniform()
    table = reverb.Table("items", sampler=selector, remover=reverb.selectors.Fifo(), max_size=max_size,
                         rate_limiter=reverb.rate_limiters.MinSize(1), signature=signature)  # fmt: skip
    if sampler == "queue":
        table = reverb.Table.queue("items", QUEUE, signature=signature)
    server = reverb.Server(port=port, tables=[table])
    ready.set()
    stop.wait()
    server.stop()


def rate(call, seconds):
    call()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        call()
        count += BATCH
    return round(count / (time.perf_counter() - start))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("payload", choices=list(PAYLOADS))
    parser.add_argument("sampler", choices=["uniform", "prioritised", "queue"])
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = multiprocessing.get_context("spawn")
    ready, stop = processes.Event(), processes.Event()
    server = processes.Process(target=serve, args=(port, options.payload, options.sampler, ready, stop), daemon=True)
    server.start()
    import numpy as np
    import reverb

    if not ready.wait(60):
        raise SystemExit("the server had not started after 60 s")
    time.sleep(1)
    client = reverb.Client(f"localhost:{port}")
    data = np.random.default_rng(0).integers(0, 255, PAYLOADS[options.payload][0], dtype=np.uint8)
    writer = client.trajectory_writer(num_keep_alive_refs=1)

    def insert():
        for _ in range(BATCH):
            writer.append({"data": data})
            writer.create_item("items", 1.0, {"data": writer.history["data"][-1:]})
        writer.flush()

    def keep_inserting():
        while True:
            insert()

    inserts = None
    if options.sampler == "queue":
        threading.Thread(target=keep_inserting, daemon=True).start()  # Ends with this process: it may wait for ever.
    else:
        inserts = rate(insert, options.seconds)
    dataset = iter(reverb.TrajectoryDataset.from_table_signature(
        f"localhost:{port}", "items", max_in_flight_samples_per_worker=2 * BATCH, num_workers_per_iterator=2)
        .batch(BATCH).prefetch(2))  # fmt: skip
    line = {"peer": "reverb", "version": importlib.metadata.version("dm-reverb"), "payload": options.payload, "batch": BATCH,
            "sampler": options.sampler, "inserts_per_second": inserts,
            "samples_per_second": rate(lambda: next(dataset).data["data"].numpy(), options.seconds)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
    server.kill()
    os._exit(0)  # Threads of the writer and of the dataset may wait for ever for a server that has gone.


if __name__ == "__main__":
    main()
