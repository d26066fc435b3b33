#!/usr/bin/env python3
"""The replay store in process beside the buffers of dm-reverb, cpprb, tianshou, TorchRL and Stable-Baselines3: items a second.

    bench/replay.py [--seconds S] [--payloads 400B 40kB 1MB frames] [--batches 1 32 256]

`frames` are 84 x 84 stacks of 4, observation and next observation both delivered, prioritised (SB3: uniform). One thread each, all in
turn on the same machine; dm-reverb, a server, over localhost with its own threads. Ours stores each frame once and delivers into the
learner's batch; the column memcpy copies the same bytes from random places of an array as large. Prints Markdown tables; makes
.peers/replay_buffers, .peers/torchrl (6 GB) and .peers/reverb if needed.
"""

import argparse
import sys

import measure

# What it is called in tables, and the environment that has it.
LIBRARIES = {"cpprb": ("cpprb", "replay_buffers"), "cpprb-compressed": ("cpprb, frames once", "replay_buffers"),
             "tianshou": ("tianshou", "replay_buffers"), "torchrl": ("TorchRL", "torchrl"),
             "sb3": ("Stable-Baselines3, uniform", "replay_buffers")}  # fmt: skip


def attempt(title, call):
    measure.note(title)
    try:
        return call().results
    except measure.Failed as error:
        measure.note(f"left out: {error}")
        return []


def ours(payload, batches, seconds):
    command = [measure.BUILD / "bench" / "bench_replay_store", "--payloads", payload, "--batches", *batches, "--threads", 1,
               "--seconds", seconds, "--json"]  # fmt: skip
    return attempt(f"{payload}: Menger", lambda: measure.run(command, 300))


def peers(payload, batches, seconds):
    """Results by name of the peer."""
    found = {}
    for library, (title, environment) in LIBRARIES.items():
        if payload != "frames" and library in ("cpprb-compressed", "sb3"):
            continue
        arguments = [library, payload, "--batches", *batches, "--seconds", seconds]
        found[title] = attempt(f"{payload}: {title}", lambda: measure.peer(environment, "replay_buffers.py", arguments, 300))
    for sampler in ("uniform", "prioritised") if payload != "frames" else ():
        arguments = [payload, sampler, "--seconds", 3 * seconds]
        found[f"dm-reverb, {sampler}"] = attempt(
            f"{payload}: dm-reverb, {sampler}", lambda: measure.peer("reverb", "reverb_replay.py", arguments, 300)
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--payloads", nargs="*", default=["400B", "40kB", "1MB", "frames"])
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 32, 256])
    options = parser.parse_args()
    for payload in options.payloads:
        mine = ours(payload, options.batches, options.seconds / 4)
        rows, best = [], {}
        for result in mine:
            name = f"Menger, {result['sampler']}"
            rows.append([name, result["batch"], measure.short(result["inserts_per_second"]),
                         measure.short(result["samples_per_second"]),
                         measure.ratio(result["samples_per_second"], result["memcpy_per_second"]), result["other"]])  # fmt: skip
        for name, results in peers(payload, options.batches, options.seconds).items():
            for result in results:
                best[result["batch"]] = max(best.get(result["batch"], 0), result["samples_per_second"])
                rows.append([name, result["batch"], measure.short(result["inserts_per_second"]),
                             measure.short(result["samples_per_second"]), "", result["other"]])  # fmt: skip
        print(f"\n{payload}\n\n" + measure.table(["store", "batch", "inserts/s", "samples/s", "of memcpy", "other"], rows))
        for batch, rate in sorted(best.items()):
            rates = {result["sampler"]: result["samples_per_second"] for result in mine if result["batch"] == batch}
            print(f"\nBatch {batch}, Menger / best of the peers: "
                  + ", ".join(f"{sampler} {measure.ratio(each, rate)}" for sampler, each in rates.items()))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
