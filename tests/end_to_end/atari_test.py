"""Atari games of menger-atari-host beside the same games in Gymnasium's own pipeline, which a Python host steps live."""

import importlib.util
import os
import pathlib
import sys
import unittest

from program import ProgramTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 2000
GAMES = {"Pong": 7, "Breakout": 8}  # With their seeds.
PEERS = ("ale_py", "cv2", "gymnasium", "numpy")

# What a user would write to have the preset ale_v5 of gymnasium's parts, and one thing more: menger seeds each game with a number
# of its environment's generator, gymnasium the first one only.
PEER = '''
import ale_py, gymnasium, numpy
from gymnasium.wrappers import AtariPreprocessing

class SeededGames(gymnasium.Wrapper):
    """A game whose resets, all of them, draw the emulator's seed from one generator."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = numpy.random.default_rng(seed)
        emulator = self.env.unwrapped
        emulator.ale.setInt("random_seed", int(self.random.integers(0, 2**31)))
        emulator.load_game()
        return self.env.reset(options=options)

def game(name):
    gymnasium.register_envs(ale_py)
    inner = gymnasium.make(f"ALE/{name}-v5", frameskip=1, disable_env_checker=True)
    return SeededGames(AtariPreprocessing(inner, noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=False))

'''


class AtariTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt "
                          "-r tools/requirements_atari.txt, or name another interpreter")
        functions = (f"def {name}():\n    return game('{name}')\n" for name in GAMES)
        (self.folder / "peer.py").write_text(PEER + "\n".join(functions))

    def rollout(self, environment, out, *more):
        return self.run_program("rollout", environment, "--out", out, *more,
                                env={**os.environ, "MENGER_PYTHON": sys.executable})

    def rows(self, file):
        """[step, action, reward, terminated, truncated, pixels]; the pixels stay one text."""
        with open(self.folder / file) as lines:
            self.assertTrue(next(lines).startswith("step,action_0,reward,terminated,truncated,observation_0,"))
            for line in lines:
                yield line.split(",", 5)

    def compare(self, game, seed):
        """Bit for bit, but for the frames of ends, where gymnasium repeats a screen of the step before."""
        ours = self.rollout(f"ALE/{game}-v5", "ours.csv", "--seed", seed, "--steps", STEPS)
        if "run `make atari`" in ours.stderr:
            self.skipTest("menger-atari-host is not built: run `make atari`")
        self.assertEqual(ours.returncode, 0, ours.stderr)
        theirs = self.rollout(f"peer:{game}", "theirs.csv", "--seed", seed, "--policy", "ours.csv")
        self.assertEqual(theirs.returncode, 0, theirs.stderr)
        ends, points = 0, 0
        for line, (a, b) in enumerate(zip(self.rows("ours.csv"), self.rows("theirs.csv"), strict=True), start=2):
            *told, pixels = a
            ended = told[3] == "1"
            self.assertEqual(told, b[:5], f"{game}, line {line}")
            self.assertTrue(ended or pixels == b[5], f"{game}, line {line}: other pixels")
            self.assertEqual(pixels.count(","), 84 * 84 - 1)
            ends += ended
            points += told[2] not in ("", "0")
        self.assertGreater(ends, 0, f"{game}: the comparison should go beyond an episode's end")
        self.assertGreater(points, 0)

    def test_games_equal_gymnasiums_own_pipeline_live(self):
        for game, seed in GAMES.items():
            with self.subTest(game):
                self.compare(game, seed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
