"""Ray: the control loop of bench/runtime_control.cc, a simulator as an actor and a policy as a task, at fixed ticks.

    ray_control.py [--ticks MILLISECONDS...] [--seconds S]
"""

import argparse
import json
import time

import numpy as np
import ray

OBSERVATIONS, ACTIONS, HIDDEN = 376, 17, 64


@ray.remote(num_cpus=0)
class Simulator:
    def __init__(self):
        self.state = np.zeros(OBSERVATIONS, np.float32)

    def step(self, action):
        self.state = 0.99 * self.state + 0.01 * np.resize(action, OBSERVATIONS)
        return self.state


@ray.remote
def policy(parameters, observation):
    for weights in parameters:
        observation = np.tanh(observation @ weights)
    return observation


def measure(tick_ms, seconds):
    tick = tick_ms * 1e-3
    ticks = int(seconds / tick)
    simulator = Simulator.remote()
    shapes = [(OBSERVATIONS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, ACTIONS)]
    parameters = ray.put([np.full(shape, 0.01, np.float32) for shape in shapes])
    action = np.zeros(ACTIONS, np.float32)
    for _ in range(100):
        action = ray.get(policy.remote(parameters, simulator.step.remote(action)))
    missed, times, i = 0, [], 0
    start = time.perf_counter()
    while i < ticks:
        begin = start + i * tick
        time.sleep(max(0.0, begin - time.perf_counter()))
        action = ray.get(policy.remote(parameters, simulator.step.remote(action)))
        took = time.perf_counter() - begin
        times.append(took * 1e6)
        late = int(took / tick)
        missed += late
        i += late + 1
    p50, p99, most = np.percentile(times, [50, 99, 100])
    result = {"tick_ms": tick_ms, "ticks": ticks, "missed_share": missed / ticks, "p50_us": p50, "p99_us": p99, "max_us": most}
    print("RESULT " + json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", nargs="*", type=float, default=[1, 3, 10, 30], help="milliseconds")
    parser.add_argument("--seconds", type=float, default=10, help="of each tick")
    options = parser.parse_args()
    ray.init(include_dashboard=False, log_to_driver=False)
    for tick_ms in options.ticks:
        measure(tick_ms, options.seconds)
    ray.shutdown()


if __name__ == "__main__":
    main()
