"""Records what gymnasium's AtariPreprocessing on ale_py and OpenCV shows of some games, for the tests of our host.

    python tools/record_atari.py [--steps N] [--out OUT] [GAME...]     writes OUT (tests/data/traces/atari.json)

Needs the packages of tools/requirements_test.txt and requirements_atari.txt. Of each game two runs: without sticky actions over
many episodes, and with them over the first one (ale_py cannot seed a running game). Actions are uniform, from a generator that
the test repeats. Recorded are every reward and end, and after each 100 steps a CRC-32 of all frames so far, but for the frames
of ends: there gymnasium repeats screens of the step before.
"""

import argparse
import json
import os
import zlib

import ale_py
import cv2
import gymnasium
import numpy
from gymnasium.wrappers import AtariPreprocessing

GAMES = ["Pong", "Breakout", "BeamRider", "Seaquest", "Qbert", "SpaceInvaders"]
SIZE = 84


class Actions:
    """Knuth's 64-bit linear congruential generator."""

    def __init__(self):
        self.state = 1

    def draw(self, count):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % count


def trace(game, sticky_percent, steps, seed=7):
    inner = gymnasium.make(
        f"ALE/{game}-v5", frameskip=1, repeat_action_probability=sticky_percent / 100, max_num_frames_per_episode=0
    ).unwrapped
    # Ours seeds each game with a number of its environment's generator, drawn before the number of no-ops.
    inner.ale.setInt("random_seed", int(numpy.random.default_rng(seed).integers(0, 2**31)))
    inner.load_game()
    env = AtariPreprocessing(inner, noop_max=0, frame_skip=4, screen_size=SIZE, terminal_on_life_loss=False)
    actions, checksum = Actions(), 0
    result = {"game": game, "sticky_percent": sticky_percent, "seed": seed, "actions": int(env.action_space.n),
              "rewards": [], "ends": [], "checksums": []}  # fmt: skip
    frame, _ = env.reset()
    checksum = zlib.crc32(frame.tobytes(), checksum)
    for step in range(steps):
        frame, reward, terminated, truncated, _ = env.step(actions.draw(env.action_space.n))
        assert not truncated
        if reward:
            result["rewards"].append([step, float(reward)])
        if terminated:
            result["ends"].append(step)
            if sticky_percent:
                steps = step + 1
                break
            frame, _ = env.reset()
        checksum = zlib.crc32(frame.tobytes(), checksum)
        if (step + 1) % 100 == 0:
            result["checksums"].append(checksum)
    return result | {"steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", default=GAMES, metavar="GAME", help="Pong, ...; 'all' for every one")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "../tests/data/traces/atari.json"))
    options = parser.parse_args()
    gymnasium.register_envs(ale_py)
    games = options.games
    if games == ["all"]:
        games = [name[4:-3] for name in gymnasium.registry if name.startswith("ALE/") and name.endswith("-v5")]
    traces = []
    for game in games:
        for sticky_percent in (0, 25):
            try:
                traces.append(trace(game, sticky_percent, options.steps))
            except AssertionError as error:
                print(f"left out: {game}: {error}")
                continue
            last = traces[-1]
            print(game, sticky_percent, "steps", last["steps"], "ends", len(last["ends"]), "rewards", len(last["rewards"]))
    with open(options.out, "w") as file:
        json.dump({"ale_py": ale_py.__version__, "opencv": cv2.__version__, "gymnasium": gymnasium.__version__,
                   "size": SIZE, "traces": traces}, file, separators=(",", ":"))  # fmt: skip
        file.write("\n")


if __name__ == "__main__":
    main()
