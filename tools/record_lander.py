"""Records the returns of two fixed policies on Gymnasium's LunarLander, for the Kolmogorov-Smirnov test of ours.

    python tools/record_lander.py [EPISODES] [OUT]     writes OUT (tests/data/traces/LunarLander.returns.csv)

Needs gymnasium[box2d]. Columns: environment, policy, return. Episode k is reset with seed 1000 + k. The heuristic is
also in src/menger/environments/lunar_lander_test.cc: change both together, then record again.
"""

import csv
import os
import sys

import gymnasium
import numpy


def uniform(space, observation, random):
    if hasattr(space, "n"):
        return int(random.integers(0, space.n))
    return random.uniform(space.low, space.high).astype(numpy.float32)


def heuristic(space, observation, random):
    """Two proportional-derivative rules: lean towards the pad and against the drift; sink the slower the lower."""
    x, y, x_speed, y_speed, angle, spin, left, right = (float(value) for value in observation)
    lean = min(max(0.5 * x + 1.1 * x_speed, -0.4), 0.4)
    turn = 0.6 * (lean - angle) - 1.1 * spin
    lift = 0.5 * (0.5 * abs(x) - y) - 0.55 * y_speed
    if left or right:
        turn, lift = 0.0, -0.5 * y_speed  # On the ground only the fall is braked.
    if hasattr(space, "n"):
        if lift > abs(turn) and lift > 0.05:
            return 2
        return 3 if turn < -0.05 else 1 if turn > 0.05 else 0
    return numpy.clip([20 * lift - 1, -20 * turn], -1, 1).astype(numpy.float32)


def main(episodes, out):
    with open(out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["environment", "policy", "return"])
        for name in ("LunarLander-v3", "LunarLanderContinuous-v3"):
            for policy in (uniform, heuristic):
                env = gymnasium.make(name)
                random = numpy.random.default_rng(1)
                totals = []
                for episode in range(episodes):
                    observation, _ = env.reset(seed=1000 + episode)
                    total, ended = 0.0, False
                    while not ended:
                        action = policy(env.action_space, observation, random)
                        observation, reward, terminated, truncated, _ = env.step(action)
                        total += float(reward)
                        ended = terminated or truncated
                    totals.append(total)
                    writer.writerow([name, policy.__name__, repr(total)])
                print(name, policy.__name__, "mean return", numpy.mean(totals).round(1))


if __name__ == "__main__":
    traces = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "traces")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 250,
         sys.argv[2] if len(sys.argv) > 2 else os.path.join(traces, "LunarLander.returns.csv"))
