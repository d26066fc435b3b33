"""An exported ONNX model does under onnxruntime what the bundle does, and so what the program does."""

import sys
import unittest

import numpy

from exporting import CARDS, CARDS_RECIPE, CONTINUOUS, OBSERVATIONS, SCREEN, SCREEN_RECIPE, OnnxPolicy, assert_alike, menger
from program import ProgramTest


class OnnxTest(ProgramTest):
    def export(self, run):
        """The policy in both forms."""
        self.succeed("export", run, "--out", "policy.menger")
        self.succeed("export", run, "--out", "policy.onnx")
        return menger.load(self.folder / "policy.menger"), OnnxPolicy(self.folder / "policy.onnx")

    def train(self, text, *settings):
        """Trains, or says that the program lacks what the recipe needs."""
        (self.folder / "recipe.toml").write_text(text)
        trained = self.run_program("train", "recipe.toml", "--out", "run", *settings)
        if "needs the torch library" in trained.stderr:
            self.skipTest("this program was built without torch")
        self.assertEqual(trained.returncode, 0, trained.stderr)

    def check(self, rows=100, close=1e-5):
        policy, onnx = self.export("run")
        assert_alike(self, policy, onnx, OBSERVATIONS // 100, rows, close=close)
        return policy, onnx

    def test_choices_of_a_perceptron(self):
        self.succeed("train", "quick.toml", "--out", "run")
        _, onnx = self.check()
        self.assertEqual((list(onnx.inputs), onnx.outputs), (["observation"], ["action", "logits"]))
        about = onnx.session.get_modelmeta().custom_metadata_map
        self.assertEqual((about["environment"], about["algorithm"]), ("CartPole-v1", "ppo"))

    def test_continuous_actions_with_normalised_and_stacked_observations(self):
        self.train(CONTINUOUS)
        _, onnx = self.check()
        self.assertEqual(list(onnx.inputs), ["observation", "frames"])
        self.assertEqual(onnx.outputs, ["next_frames", "action", "mean"])
        # Far beyond the bounds all is clipped.
        action, _ = onnx.act({"observation": numpy.full((100, 3), 1e6, numpy.float32)})
        self.assertLessEqual(numpy.abs(action).max(), 2)

    def test_normalised_layers(self):
        self.train(CONTINUOUS, "--set", "network.layer_norm=true")
        self.check()

    def test_normalised_layers_that_heads_share(self):
        self.train(CONTINUOUS, "--set", "network.layer_norm=true", "--set", "network.activation=relu", "--set",
                   "network.shared_trunk=true", "--set", "network.hidden=[33]")  # fmt: skip
        self.check()

    def test_values_of_a_distribution_of_returns(self):
        for recipe in ("cartpole_rainbow", "cartpole_qr_dqn"):
            self.succeed("train", recipe, "--set", "steps=600", "--set", "replay.min_size=200", "--set",
                         "evaluation.episodes=1", "--out", recipe)  # fmt: skip
            policy, onnx = self.export(recipe)
            assert_alike(self, policy, onnx, steps=100, rows=100)
            self.assertEqual(onnx.outputs, ["action", "values"])

    def test_codes_numbers_and_a_mask(self):
        (self.folder / "cards.py").write_text(CARDS)
        self.train(CARDS_RECIPE + f"[host]\npython = '{sys.executable}'\n")
        _, onnx = self.check()
        self.assertEqual(set(onnx.inputs), {"observation/suit", "observation/table/odds", "action_mask"})

    def test_the_state_of_a_recurrent_network_is_an_input_and_an_output(self):
        self.train(CONTINUOUS, "--set", "network.kind=lstm", "--set", "network.lstm_size=16", "--set", "ppo.minibatch_size=64",
                   "--set", "transforms.frame_stack=1")  # fmt: skip
        policy, onnx = self.check()
        self.assertEqual((onnx.inputs["state"].shape, onnx.outputs[-1]), (["batch", 32], "next_state"))

    def test_pixels(self):
        (self.folder / "screens.py").write_text(SCREEN)
        self.train(SCREEN_RECIPE + f"[host]\npython = '{sys.executable}'\n")
        policy, onnx = self.export("run")
        assert_alike(self, policy, onnx, steps=10, rows=20)
        # Channels last, as Gymnasium has them, is read as well.
        policy.reset()
        first = numpy.random.default_rng(2).integers(0, 256, (40, 36, 1), numpy.uint8)
        policy.act(first)
        outputs = policy.outputs
        policy.reset()
        policy.act(first.transpose(2, 0, 1))
        numpy.testing.assert_array_equal(policy.outputs, outputs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
