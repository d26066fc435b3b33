#!/usr/bin/env python3
"""Replay buffers in process: items a second of one of cpprb, tianshou, TorchRL and Stable-Baselines3.

    replay_buffers.py LIBRARY PAYLOAD [--batches 1 32 256] [--seconds 1]

LIBRARY is cpprb, cpprb-compressed, tianshou, torchrl (in its own environment) or sb3. PAYLOAD is 400B, 40kB or 1MB (one array an item;
not for sb3 and the compressed cpprb) or frames (84 x 84 x 4 uint8, observation and next observation, both delivered). Prioritised with
exponent 0.6, updates of what was drawn in the rate called update; sb3 has uniform draws alone. Items are added one by one, to torchrl by
extend, 50 at a time. A line a batch size, "RESULT " and a JSON object.
"""

import argparse
import importlib.metadata
import json
import time

import numpy as np

EXPONENT, CORRECTION = 0.6, 0.4
STACK = (84, 84, 4)
PAYLOADS = {"400B": ((400,), 100_000), "40kB": ((40_000,), 20_000), "1MB": ((1_000_000,), 1_200), "frames": (STACK, 20_000)}
EPISODE = 1000


class Cpprb:
    def __init__(self, capacity, shape, frames, compressed):
        from cpprb import PrioritizedReplayBuffer

        leaf = {"shape": shape, "dtype": np.uint8}
        spec = {"obs": leaf, "act": {"dtype": np.int64}, "rew": {}, "done": {}} if frames else {"obs": leaf}
        options = {"next_of": "obs", "stack_compress": "obs"} if compressed else {}
        if frames and not compressed:
            spec["next_obs"] = leaf
        self.frames = frames
        self.buffer = PrioritizedReplayBuffer(capacity, spec, alpha=EXPONENT, **options)

    def add(self, index, item, following):
        if self.frames:
            self.buffer.add(obs=item, next_obs=following, act=1, rew=1.0, done=0.0)
        else:
            self.buffer.add(obs=item)
        if index % EPISODE == EPISODE - 1:
            self.buffer.on_episode_end()

    def sample(self, count):
        return self.buffer.sample(count, beta=CORRECTION)["indexes"]

    def update(self, drawn, priorities):
        self.buffer.update_priorities(drawn, priorities)


class Tianshou:
    def __init__(self, capacity):
        from tianshou.data import Batch, PrioritizedReplayBuffer

        self.batch, self.buffer = Batch, PrioritizedReplayBuffer(capacity, alpha=EXPONENT, beta=CORRECTION)

    def add(self, index, item, following):
        self.buffer.add(self.batch(obs=item, obs_next=following, act=1, rew=1.0, terminated=False,
                                   truncated=index % EPISODE == EPISODE - 1, info={}))  # fmt: skip

    def sample(self, count):
        return self.buffer.sample(count)[1]

    def update(self, drawn, priorities):
        self.buffer.update_weight(drawn, priorities)


class TorchRL:
    SLAB = 50

    def __init__(self, capacity, frames):
        import torch
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer

        torch.set_num_threads(1)
        self.torch, self.table, self.frames, self.items = torch, TensorDict, frames, []
        self.buffer = TensorDictPrioritizedReplayBuffer(alpha=EXPONENT, beta=CORRECTION, storage=LazyTensorStorage(capacity),
                                                        priority_key="priority")  # fmt: skip

    def add(self, _index, item, following):
        self.items.append((item, following))
        if len(self.items) < self.SLAB:
            return
        torch = self.torch
        columns = {"obs": torch.from_numpy(np.stack([item for item, _ in self.items]))}
        if self.frames:
            columns |= {"next_obs": torch.from_numpy(np.stack([following for _, following in self.items])),
                        "act": torch.ones(self.SLAB, dtype=torch.int64), "rew": torch.ones(self.SLAB),
                        "done": torch.zeros(self.SLAB)}  # fmt: skip
        self.buffer.extend(self.table(columns, [self.SLAB]))
        self.items.clear()

    def sample(self, count):
        return self.buffer.sample(count)

    def update(self, drawn, priorities):
        drawn["priority"] = self.torch.from_numpy(priorities.astype(np.float32))
        self.buffer.update_tensordict_priority(drawn)


class StableBaselines3:
    def __init__(self, capacity, shape):
        import gymnasium
        import torch
        from stable_baselines3.common.buffers import ReplayBuffer

        torch.set_num_threads(1)  # Two stall on small copies.
        space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.buffer = ReplayBuffer(capacity, space, gymnasium.spaces.Discrete(6), device="cpu")

    def add(self, _index, item, following):
        self.buffer.add(item, following, np.array([1]), np.array([1.0]), np.array([0.0]), [{}])

    def sample(self, count):
        return self.buffer.sample(count)


def rate(call, per_call, seconds):
    call()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        call()
        count += per_call
    return round(count / (time.perf_counter() - start))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=["cpprb", "cpprb-compressed", "tianshou", "torchrl", "sb3"])
    parser.add_argument("payload", choices=list(PAYLOADS))
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 32, 256])
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    frames = options.payload == "frames"
    shape, capacity = PAYLOADS[options.payload]
    random = np.random.default_rng(0)
    pool = random.integers(0, 255, (64, *shape), dtype=np.uint8)
    if options.library.startswith("cpprb"):
        buffer = Cpprb(capacity, shape, frames, options.library == "cpprb-compressed")
    elif options.library == "tianshou":
        buffer = Tianshou(capacity)
    elif options.library == "torchrl":
        buffer = TorchRL(capacity, frames)
    else:
        buffer = StableBaselines3(capacity, shape)
    start = time.perf_counter()
    for i in range(capacity):
        buffer.add(i, pool[i % 64], pool[(i + 1) % 64])
    inserts = round(capacity / (time.perf_counter() - start))

    package = {"cpprb": "cpprb", "tianshou": "tianshou", "torchrl": "torchrl", "sb3": "stable-baselines3"}[options.library.split("-")[0]]
    for batch in options.batches:
        updates = None
        if hasattr(buffer, "update"):
            updates = rate(lambda: buffer.update(buffer.sample(batch), random.random(batch) + 0.1), batch, options.seconds)
        line = {"peer": options.library, "version": importlib.metadata.version(package), "payload": options.payload,
                "batch": batch, "inserts_per_second": inserts,
                "samples_per_second": rate(lambda: buffer.sample(batch), batch, options.seconds),
                "samples_with_update_per_second": updates}  # fmt: skip
        print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
