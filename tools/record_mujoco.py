"""Records Gymnasium's MuJoCo environments as fixtures for the tests of src/menger/environments/mujoco.

    python tools/record_mujoco.py [OUT]      writes NAME.csv and specs.csv into OUT (tests/data/traces/mujoco)

Needs gymnasium[mujoco] and the versions that tools/requirements_mujoco.txt pins.

A file holds several runs. Each is reset with its seed; later episodes of it are reset without one, so that they go on with
the environment's random stream. Step t takes numpy.random.default_rng(1000 + seed)'s next `amplitude` * uniform(low, high),
as float32, so the actions need not be written down.

One line for each reset, for each end and for every n-th step. Columns: seed, amplitude, episode, step (0: a reset),
reward, terminated, truncated, hash, observation_i. Numbers are the shortest decimal text that reads back to the same bits.
The hash is the 64-bit FNV-1a of all that the run has shown so far, lines left out included: after a reset the bytes of
the observation, after a step those of the reward and of the observation, float64 in little-endian order.
"""

import csv
import os
import sys

import gymnasium
import mujoco
import numpy

# Name: (every n-th step, [(seed, amplitude, steps)]).
RUNS = {
    "InvertedPendulum-v5": (20, [(0, 1.0, 100), (1, 0.01, 500), (2, 1.5, 50)]),
    "Hopper-v5": (10, [(0, 1.0, 400), (1, 0.1, 400), (2, 1.5, 200)]),
    "Walker2d-v5": (10, [(0, 1.0, 400), (1, 0.1, 400), (2, 1.5, 200)]),
    "HalfCheetah-v5": (40, [(0, 1.0, 1200), (1, 0.1, 300), (2, 1.5, 500)]),
    "Ant-v5": (50, [(0, 1.0, 800), (1, 0.1, 200), (2, 1.5, 200)]),
    "Humanoid-v5": (1000, [(0, 1.0, 90), (1, 0.1, 80), (2, 1.5, 40)]),
}


class Hash:
    """FNV-1a over 64 bits."""

    def __init__(self):
        self.value = 0xCBF29CE484222325

    def add(self, *numbers):
        for byte in numpy.concatenate([numpy.atleast_1d(n) for n in numbers]).astype("<f8").tobytes():
            self.value = (self.value ^ byte) * 0x100000001B3 % 2**64


def texts(values):
    return [repr(float(value)) for value in values]


def record(writer, env, every, seed, amplitude, steps):
    space, random, seen = env.action_space, numpy.random.default_rng(1000 + seed), Hash()
    episode = step = 0

    def line(reward, terminated, truncated, observation):
        writer.writerow([seed, amplitude, episode, step, repr(float(reward)), int(terminated), int(truncated),
                         f"{seen.value:016x}", *texts(observation)])  # fmt: skip

    observation, _ = env.reset(seed=seed)
    seen.add(observation)
    line(0, False, False, observation)
    for _ in range(steps):
        action = (amplitude * random.uniform(space.low, space.high)).astype(numpy.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        step += 1
        seen.add(reward, observation)
        if terminated or truncated or step % every == 0:
            line(reward, terminated, truncated, observation)
        if terminated or truncated:
            observation, _ = env.reset()
            episode, step = episode + 1, 0
            seen.add(observation)
            line(0, False, False, observation)


def record_specs(path):
    """specs.csv: what is known of each environment before it is made; the bounds are the same for all actions."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["environment", "observation_size", "action_size", "action_low", "action_high", "max_episode_steps",
                         "reward_threshold"])  # fmt: skip
        for name in RUNS:
            env, spec = gymnasium.make(name), gymnasium.spec(name)
            space = env.action_space
            assert space.dtype == numpy.float32 and len(set(space.low)) == len(set(space.high)) == 1
            writer.writerow([name, *env.observation_space.shape, *space.shape, float(space.low[0]), float(space.high[0]),
                             spec.max_episode_steps, spec.reward_threshold])  # fmt: skip


def main(out):
    os.makedirs(out, exist_ok=True)
    record_specs(f"{out}/specs.csv")
    for name, (every, runs) in RUNS.items():
        env = gymnasium.make(name)
        with open(f"{out}/{name}.csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["seed", "amplitude", "episode", "step", "reward", "terminated", "truncated", "hash",
                             *(f"observation_{i}" for i in range(env.observation_space.shape[0]))])  # fmt: skip
            for run in runs:
                record(writer, env, every, *run)
    with open(f"{out}/README.md", "w") as file:
        file.write(f"""# Recorded MuJoCo trajectories

Written by `tools/record_mujoco.py` (see there for the columns) with Gymnasium {gymnasium.__version__}, MuJoCo
{mujoco.__version__} and NumPy {numpy.__version__}. Not for editing.
""")


if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(__file__), "..", "tests", "data", "traces", "mujoco")
    main(sys.argv[1] if len(sys.argv) > 1 else folder)
