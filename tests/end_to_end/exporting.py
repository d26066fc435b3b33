"""What the tests of exported policies share: recipes, observations, and the two readers that are not Python's own."""

import ctypes
import pathlib
import sys

import numpy

from program import PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "python"))
import menger  # noqa: E402, F401

BUILD = pathlib.Path(PROGRAM).parent
OBSERVATIONS = 10_000
CLOSE = 1e-5  # Of top logits that may be told apart either way, and of continuous actions.

CONTINUOUS = """
environment = "Pendulum-v1"
algorithm = "ppo"
steps = 2048
[collector]
kind = "serial"
workers = 1
horizon = 64
[transforms]
apply = ["normalise_observation", "normalise_reward"]
frame_stack = 2
[ppo]
learning_rate = 0.01
[evaluation]
episodes = 1
"""

# Several arrays, one of them the mask of allowed actions.
CARDS = """
import gymnasium, numpy
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

class Cards(gymnasium.Env):
    observation_space = Dict({"suit": Discrete(4), "table": Dict({"odds": Box(-1, 1, (3,), numpy.float64)}),
                              "action_mask": MultiBinary(5)})
    action_space = Discrete(5)

    def seen(self):
        mask = self.np_random.integers(0, 2, 5).astype(numpy.int8)
        mask[self.np_random.integers(5)] = 1
        return {"suit": int(self.np_random.integers(4)), "table": {"odds": self.np_random.uniform(-1, 1, 3)}, "action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.now = self.seen()
        return self.now, {}

    def step(self, action):
        assert self.now["action_mask"][action], "not allowed"
        reward = float(self.now["table"]["odds"][action % 3] * (1 + self.now["suit"]))
        self.steps += 1
        self.now = self.seen()
        return self.now, reward, False, self.steps == 50, {}
"""

CARDS_RECIPE = """
environment = "cards:Cards"
algorithm = "ppo"
steps = 512
[collector]
kind = "serial"
workers = 1
environments = 2
horizon = 32
[evaluation]
episodes = 1
"""

# Pixels, as Gymnasium has them: channels last.
SCREEN = """
import gymnasium, numpy

class Screen(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (40, 36, 1), numpy.uint8)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.integers(0, 256, (40, 36, 1), numpy.uint8), {}

    def step(self, action):
        self.steps += 1
        return self.np_random.integers(0, 256, (40, 36, 1), numpy.uint8), float(action), False, self.steps == 20, {}
"""

SCREEN_RECIPE = """
environment = "screens:Screen"
algorithm = "ppo"
steps = 128
[collector]
kind = "serial"
workers = 1
environments = 2
horizon = 16
[network]
kind = "nature_cnn"
[transforms]
frame_stack = 3
[evaluation]
episodes = 1
"""


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int32), ("dimensions", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("elements", ctypes.c_int64)]


class Library:
    """libmenger_policy through ctypes: act(observations) for one after another."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(str(BUILD / "libmenger_policy.so"))
        for name in ("menger_policy_open", "menger_player_new"):
            getattr(self.functions, name).restype = ctypes.c_void_p
        error = ctypes.create_string_buffer(300)
        policy = self.functions.menger_policy_open(str(path).encode(), error, 300)
        if not policy:
            raise ValueError(error.value.decode())
        self.policy = ctypes.c_void_p(policy)
        self.player = ctypes.c_void_p(self.functions.menger_player_new(self.policy))

    def act(self, leaves, action):
        pointers = (ctypes.c_void_p * len(leaves))(*[leaf.ctypes.data for leaf in leaves])
        return self.functions.menger_player_act(self.player, pointers, ctypes.c_void_p(action.ctypes.data))

    def reset(self):
        self.functions.menger_player_reset(self.player)

    def close(self):
        self.functions.menger_player_delete(self.player)
        self.functions.menger_policy_close(self.policy)


class OnnxPolicy:
    """An ONNX policy under onnxruntime, with its memory: act(observation by name) for a batch."""

    def __init__(self, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.outputs = [value.name for value in self.session.get_outputs()]
        self.memory = {}

    def act(self, observation):
        """The action, and what it was chosen by."""
        rows = len(next(iter(observation.values())))
        for name in ("frames", "state"):
            if name in self.inputs:
                self.memory.setdefault(name, numpy.zeros((rows, self.inputs[name].shape[1]), numpy.float32))
        results = dict(zip(self.outputs, self.session.run(None, {**observation, **self.memory})))
        self.memory = {name: results[f"next_{name}"] for name in self.memory}
        return results["action"], next(results[name] for name in ("logits", "values", "mean") if name in results)


def random_observation(policy, random, rows):
    """A value for each array that the policy reads, `rows` of each."""
    values = {}
    for leaf in policy.observation:
        shape = (rows, *leaf.shape)
        if leaf.is_code:
            drawn = random.integers(0, leaf.counts, (rows, len(leaf.counts))).reshape(shape)
        elif leaf.space == "mask":
            drawn = random.integers(0, 2, shape)
            drawn[:, random.integers(leaf.shape[-1])] = 1
        elif leaf.dtype == numpy.uint8:
            drawn = random.integers(0, 256, shape)
        else:
            drawn = random.uniform(-3, 3, shape)
        values[leaf.name] = drawn.astype(leaf.dtype)
    return values


def assert_alike(test, policy, onnx, steps, rows, seed=1, close=CLOSE):
    """Python and onnxruntime do the same at each of `steps` for each of `rows`: one choice, unless the top two are nearly equal;
    one number."""
    random = numpy.random.default_rng(seed)
    policy.reset()
    for _ in range(steps):
        observation = random_observation(policy, random, rows)
        actions = policy.act(observation)
        other, outputs = onnx.act(observation)
        test.assertEqual((actions.shape, actions.dtype), (other.shape, other.dtype))
        if policy.action.dtype == numpy.float32:
            numpy.testing.assert_allclose(other, actions, atol=close, rtol=close)
            continue
        numpy.testing.assert_allclose(outputs, policy.outputs, atol=1e-4, rtol=1e-4)
        for row in numpy.flatnonzero((actions != other).reshape(rows, -1).any(axis=1)):
            chosen = policy.outputs[row]
            mask = observation.get("action_mask")
            top = numpy.sort(chosen if mask is None else chosen[mask[row].ravel() != 0])[-2:]
            test.assertLess(top[1] - top[0], close * max(1, abs(top[1])), f"row {row}: {actions[row]} and {other[row]}")
