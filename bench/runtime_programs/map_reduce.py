#!/usr/bin/env python3
"""Map and reduce over 128 MB: frames of eight sensors, as they were recorded, are put in order by sensor and summed up.

    bench/runtime_programs/map_reduce.py [--package menger.runtime]

64 blocks of 2 MB are put; 64 maps give a piece for each sensor; 8 reduces join what is a sensor's, 16 MB each, and say its mean, least and greatest.
"""

import numpy as np
import program

BLOCKS = 64
SENSORS = 8
FRAMES = 2 * 2**20 // 4 // SENSORS


def split(block):
    return [np.ascontiguousarray(block[:, i]) for i in range(SENSORS)]


def summarise(*pieces):
    series = np.concatenate(pieces)
    return float(series.mean()), float(series.min()), float(series.max())


def whole(ray, blocks, split, summarise):
    pieces = [split.remote(ray.put(block)) for block in blocks]
    return ray.get([summarise.remote(*[each[i] for each in pieces]) for i in range(SENSORS)])


def bare(blocks, room):
    """The same in one process: the arithmetic, and each value that would pass from one to another copied once."""
    pieces = []
    for block, copy, parts in zip(blocks, *room):
        np.copyto(copy, block)
        for part, piece in zip(parts, split(copy), strict=True):
            np.copyto(part, piece)
        pieces.append(parts)
    return [summarise(*[each[i] for each in pieces]) for i in range(SENSORS)]


def run(ray):
    random = np.random.default_rng(0)
    blocks = [random.standard_normal((FRAMES, SENSORS), np.float32) for _ in range(BLOCKS)]
    tasks = ray.remote(num_returns=SENSORS)(split), ray.remote(summarise)
    whole(ray, blocks, *tasks)
    begin = program.clock()
    result = whole(ray, blocks, *tasks)
    seconds = program.clock() - begin
    room = np.zeros((BLOCKS, FRAMES, SENSORS), np.float32), np.zeros((BLOCKS, SENSORS, FRAMES), np.float32)
    assert result == bare(blocks, room)
    bare_seconds = program.best(lambda: bare(blocks, room), 3)
    copies = program.best(lambda: [np.copyto(copy, block) for block, copy in zip(blocks, room[0])]) * 2
    return {"seconds": seconds, "bare_seconds": bare_seconds, "copy_seconds": copies, "bytes": 2 * BLOCKS * blocks[0].nbytes}


if __name__ == "__main__":
    program.main(run, __doc__)
