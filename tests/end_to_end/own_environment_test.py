"""Environments of one's own, in a module beside the recipe: every kind of observation learns by a recipe of two lines."""

import importlib.util
import json
import os
import sys
import unittest

from program import ProgramTest

MODULE = '''
import gymnasium, numpy
from gymnasium import spaces

class Shown(gymnasium.Env):
    """A bandit of one step an episode: of two actions, the one shown is worth 1. `kind` says how it is shown."""
    action_space = spaces.Discrete(2)

    def __init__(self, kind):
        self.kind = kind
        flags, place = spaces.MultiBinary(2), spaces.Box(0, 1, (1,), numpy.float32)
        image = lambda side: spaces.Box(0, 255, (side, side, 3), numpy.uint8)
        self.observation_space = {
            "flags": flags,
            "flags_in_dict": spaces.Dict({"cue": flags, "place": place}),
            "small_image": image(7),
            "image": image(40),
            "image_in_dict": spaces.Dict({"image": image(40), "place": place}),
            "text": spaces.Dict({"cue": flags, "mission": spaces.Text(99)}),
            "only_text": spaces.Text(99),
            "goal": spaces.Dict({"observation": place, "achieved_goal": place, "desired_goal": place}),
        }[kind]

    def observe(self):
        flags = numpy.array([1 - self.right, self.right], numpy.int8)
        place, right = numpy.zeros(1, numpy.float32), numpy.full(1, self.right, numpy.float32)
        image = numpy.full((self.observation_space.get("image") or self.observation_space).shape if self.kind == "image_in_dict"
                           else self.observation_space.shape or (1,), 200 * self.right, numpy.uint8)
        return {"flags": flags, "flags_in_dict": {"cue": flags, "place": place}, "small_image": image, "image": image,
                "image_in_dict": {"image": image, "place": place}, "text": {"cue": flags, "mission": "find the key"},
                "goal": {"observation": place, "achieved_goal": place, "desired_goal": right}}[self.kind]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.right = int(self.np_random.integers(2))
        return self.observe(), {}

    def step(self, action):
        return self.observe(), float(action == self.right), True, False, {}
'''
LEARNED = 0.95  # Of at most 1; by chance it is 0.5.


class OwnEnvironmentTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "my_module.py").write_text(MODULE)
        os.environ["MENGER_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "MENGER_PYTHON")

    def train(self, kind, algorithm="ppo", *more):
        """Two lines, of which the second names the algorithm; returns the mean return at the end and what was said."""
        (self.folder / "mine.toml").write_text(f'environment = "my_module:Shown"\nalgorithm = "{algorithm}"\n')
        settings = [f'host.arguments={{"kind": "{kind}"}}', "steps=4096", "evaluation.episodes=40", "collector.kind=serial",
                    "evaluation.every=0", *more]  # fmt: skip
        done = self.succeed("train", "mine.toml", "--out", f"{kind}_{algorithm}",
                            *(word for setting in settings for word in ("--set", setting)))  # fmt: skip
        summary = json.loads((self.folder / f"{kind}_{algorithm}" / "summary.json").read_text())
        return summary["evaluation"]["return_mean"], done.stdout + done.stderr

    def test_flags_are_learned_from_alone_and_in_a_dict(self):
        for kind in ("flags", "flags_in_dict"):
            self.assertGreaterEqual(self.train(kind)[0], LEARNED, kind)

    def test_an_image_too_small_for_convolutions_is_learned_from(self):
        self.assertGreaterEqual(self.train("small_image")[0], LEARNED)

    def test_an_image_beside_other_leaves_can_be_read_as_numbers(self):
        """Convolutions, the default, are the matter of image_and_vector_test."""
        mean, _ = self.train("image_in_dict", "ppo", "network.kind=mlp", "transforms.frame_stack=1")
        self.assertGreaterEqual(mean, LEARNED)

    def test_replay_takes_every_kind(self):
        for kind in ("flags", "small_image", "flags_in_dict"):
            self.assertGreaterEqual(self.train(kind, "dqn")[0], LEARNED, kind)

    def test_the_goal_of_a_goal_environment_is_learned_from(self):
        self.assertGreaterEqual(self.train("goal")[0], LEARNED)

    def test_text_is_left_out_with_a_notice(self):
        mean, said = self.train("text")
        self.assertGreaterEqual(mean, LEARNED)
        self.assertEqual(said.count("its 'observation/mission' is Text and is left out"), 1, said)
        finished = self.run_program("train", "mine.toml", "--set", 'host.arguments={"kind": "only_text"}')
        self.assertIn("nothing but Text, of which nothing is learned", finished.stderr)

    def test_environments_that_many_begin_with_train(self):
        """One line each in docs/environments.md."""
        for environment, package in (("FrozenLake-v1", "gymnasium"), ("Taxi-v4", "gymnasium"), ("CliffWalking-v1", "gymnasium"),
                                     ("minigrid:MiniGrid-Empty-5x5-v0", "minigrid"), ("CarRacing-v3", "Box2D")):  # fmt: skip
            if importlib.util.find_spec(package) is None:
                continue
            (self.folder / "two.toml").write_text(f'environment = "{environment}"\nalgorithm = "ppo"\n')
            settings = ("steps=64", "collector.kind=serial", "collector.environments=2", "collector.horizon=16",
                        "evaluation.episodes=1", "evaluation.steps_max=40")  # fmt: skip
            self.succeed("train", "two.toml", *(word for each in settings for word in ("--set", each)))

    def test_a_package_that_was_not_imported_is_hinted_at(self):
        finished = self.run_program("describe", "my_module/Shown-v0")
        self.assertIn('write environment = "my_module:my_module/Shown-v0"', finished.stderr)
        finished = self.run_program("describe", "MiniGrid-Nowhere-v0")
        self.assertIn('"minigrid:MiniGrid-Nowhere-v0"', finished.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
