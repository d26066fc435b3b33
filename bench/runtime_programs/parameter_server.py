#!/usr/bin/env python3
"""A parameter server: 300 updates of weights of 2 MB, by gradients of 2 MB from two workers.

    bench/runtime_programs/parameter_server.py [--package menger.runtime]

Each worker has its part of the data, here the mean of it: the loss is the distance from that. The workers take turns, so a
gradient is of the weights that its worker was given, one update behind, and the result is the same each time.
"""

import numpy as np
import program

SIZE = 2 * 2**20 // 4
WORKERS = 2
UPDATES = 300
RATE = np.float32(0.125)


class Server:
    def __init__(self, size):
        self.weights = np.zeros(size, np.float32)
        self.step = np.empty(size, np.float32)

    def apply(self, gradient):
        self.weights -= np.multiply(gradient, RATE, out=self.step)
        return self.weights


class Worker:
    def __init__(self, seed, size):
        self.mean = np.random.default_rng(seed).standard_normal(size, np.float32)
        self.gradient = np.empty(size, np.float32)

    def compute(self, weights):
        return np.subtract(weights, self.mean, out=self.gradient)


def train(ray, server, workers, weights, updates):
    gradients = [worker.compute.remote(weights) for worker in workers]
    for i in range(updates):
        weights = server.apply.remote(gradients[i % WORKERS])
        gradients[i % WORKERS] = workers[i % WORKERS].compute.remote(weights)
    return ray.get(weights)


def bare(weights, updates):
    """The same in one process: the arithmetic, and each value that would pass from one to another copied once."""
    server, workers = Server(SIZE), [Worker(seed, SIZE) for seed in range(WORKERS)]
    server.weights[:] = weights
    gradients, passed = [np.zeros(SIZE, np.float32) for _ in workers], np.zeros(SIZE, np.float32)
    begin = program.clock()
    for gradient, worker in zip(gradients, workers, strict=True):
        np.copyto(gradient, worker.compute(weights))
    for i in range(updates):
        np.copyto(passed, server.apply(gradients[i % WORKERS]))
        np.copyto(gradients[i % WORKERS], workers[i % WORKERS].compute(passed))
    return passed, program.clock() - begin


def run(ray):
    server = ray.remote(num_cpus=0)(Server).remote(SIZE)
    workers = [ray.remote(Worker).remote(seed, SIZE) for seed in range(WORKERS)]
    first = train(ray, server, workers, np.zeros(SIZE, np.float32), 20)
    begin = program.clock()
    weights = train(ray, server, workers, first, UPDATES)
    seconds = program.clock() - begin
    expected, bare_seconds = bare(first, UPDATES)
    assert np.array_equal(weights, expected)
    ring = np.zeros((4, SIZE), np.float32)
    copies = program.best(lambda: [np.copyto(each, weights) for each in ring]) / len(ring) * 2 * UPDATES
    return {"seconds": seconds, "bare_seconds": bare_seconds, "copy_seconds": copies, "bytes": 2 * UPDATES * weights.nbytes}


if __name__ == "__main__":
    program.main(run, __doc__)
