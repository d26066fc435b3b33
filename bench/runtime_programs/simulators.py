#!/usr/bin/env python3
"""Simulators with stragglers: 8,000 steps of 16 actors, each asked again as soon as `wait` says that it is ready.

    bench/runtime_programs/simulators.py [--package menger.runtime]

An evolution strategy's inner loop: who is slow holds up nobody else. Every hundredth step takes 2 ms.
"""

import time

import program

SIMULATORS = 16
STEPS = 8000


class Simulator:
    """A walk whose state is a function of its seed and the number of steps."""

    def __init__(self, seed):
        self.seed, self.state, self.steps = seed, seed, 0

    def step(self, action):
        self.steps += 1
        if (self.steps + self.seed) % 100 == 0:
            time.sleep(0.002)
        self.state = (self.state * 6364136223846793005 + action) % 2**63
        return self.seed, self.steps, self.state


def collect(ray, simulators, steps):
    """Does so many steps; the last (steps, state) of each."""
    running = [simulator.step.remote(1) for simulator in simulators]
    last, asked = {}, len(running)
    while running:
        (ready,), running = ray.wait(running)
        seed, *what = ray.get(ready)
        last[seed] = what
        if asked < steps:
            asked += 1
            running.append(simulators[seed].step.remote(what[0]))
    return last


def expected(seed, steps, state):
    """The state after so many more steps."""
    walk = Simulator(seed)
    walk.state = state
    for step in steps:
        walk.state = (walk.state * 6364136223846793005 + step) % 2**63
    return walk.state


def run(ray):
    kind = ray.remote(num_cpus=0)(Simulator)
    simulators = [kind.remote(seed) for seed in range(SIMULATORS)]
    before = collect(ray, simulators, 10 * SIMULATORS)
    begin = program.clock()
    after = collect(ray, simulators, STEPS)
    seconds = program.clock() - begin
    assert sum(after[seed][0] - before[seed][0] for seed in range(SIMULATORS)) == STEPS
    for seed in range(SIMULATORS):
        steps, state = before[seed]
        actions = [1, *range(steps + 1, after[seed][0])]
        assert expected(seed, actions, state) == after[seed][1]
    return {"seconds": seconds}


if __name__ == "__main__":
    program.main(run, __doc__)
