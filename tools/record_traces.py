"""Records Gymnasium trajectories as fixtures for the tests of src/menger/environments.

    python tools/record_traces.py [OUT]      writes OUT (tests/data/traces)/NAME.csv and NAME.continued.csv

Needs gymnasium[box2d]. NAME.csv: uniform-random actions of half amplitude, episode k reset with seed k.
NAME.continued.csv: seed 100, later episodes reset without a seed, so that they go on with the environment's random
stream; actions that reach goals and leave their bounds.

One line a step; step 0 is a reset. Columns: episode, step, action_i (empty at a reset), reward, terminated, truncated,
observation_i (after the step). Numbers are the shortest decimal text that reads back to the same bits.
"""

import csv
import os
import sys

import gymnasium
import numpy

NAMES = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "LunarLander-v3",
         "LunarLanderContinuous-v3"]


def half_random(name, space, observation, random):
    if hasattr(space, "n"):
        return int(random.integers(0, space.n))
    return (0.5 * random.uniform(space.low, space.high)).astype(space.dtype)


def reaching(name, space, observation, random):
    """Half of the time random, beyond the bounds where there are any; else pumps energy where that is the task."""
    if random.uniform() < 0.5 or name not in ("Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0"):
        if hasattr(space, "n"):
            return int(random.integers(0, space.n))
        return (1.5 * random.uniform(space.low, space.high)).astype(space.dtype)
    speed = observation[4] if name == "Acrobot-v1" else observation[1]
    if hasattr(space, "n"):
        return (0 if speed > 0 else 2) if name == "Acrobot-v1" else (2 if speed > 0 else 0)
    return numpy.sign(speed) * numpy.ones(1, numpy.float32)


def texts(values):
    return [str(value) for value in numpy.atleast_1d(values)]  # Of NumPy scalars: shortest for their own type.


def record(path, name, steps, seed, seeded, choose):
    env = gymnasium.make(name)
    space = env.action_space
    random = numpy.random.default_rng(seed * 7919 + 12345)
    size = 1 if hasattr(space, "n") else space.shape[0]
    observation, _ = env.reset(seed=seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["episode", "step", *(f"action_{i}" for i in range(size)), "reward", "terminated", "truncated",
                         *(f"observation_{i}" for i in range(observation.size))])
        episode = step = 0
        writer.writerow([episode, step, *[""] * size, 0.0, 0, 0, *texts(observation)])
        for t in range(steps):
            action = choose(name, space, observation, random)
            observation, reward, terminated, truncated, _ = env.step(action)
            step += 1
            writer.writerow([episode, step, *texts(action), float(reward), int(terminated), int(truncated),
                             *texts(observation)])
            if (terminated or truncated) and t + 1 < steps:
                episode, step = episode + 1, 0
                observation, _ = env.reset(seed=seed + episode if seeded else None)
                writer.writerow([episode, step, *[""] * size, 0.0, 0, 0, *texts(observation)])


def record_terrain(path):
    """LunarLander.terrain.csv: the heights of the ground's corners after a reset with each seed."""
    env = gymnasium.make("LunarLander-v3")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["seed", *(f"height_{i}" for i in range(11))])
        for seed in (0, 1, 7, 123456789, 2**63):
            env.reset(seed=seed)
            edges = [fixture.shape.vertices for fixture in env.unwrapped.moon.fixtures[1:]]
            heights = [edge[0][1] for edge in edges] + [edges[-1][1][1]]
            writer.writerow([seed, *texts(numpy.array(heights, numpy.float32))])


def main(out):
    os.makedirs(out, exist_ok=True)
    for name in NAMES:
        record(f"{out}/{name}.csv", name, 200, 0, True, half_random)
        record(f"{out}/{name}.continued.csv", name, 520, 100, False, reaching)
    record_terrain(f"{out}/LunarLander.terrain.csv")
    with open(f"{out}/README.md", "w") as file:
        file.write(f"""# Recorded Gymnasium trajectories

Written by `tools/record_traces.py` (see there for the columns) with Gymnasium {gymnasium.__version__} and NumPy
{numpy.__version__}, and `LunarLander.returns.csv` by `tools/record_lander.py`. Not for editing.
""")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "data", "traces"))
