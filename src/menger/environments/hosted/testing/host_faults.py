"""Environments for tests of what may not come from one: each fault is given by the one that was seeded with 1, at its step 3."""

import gymnasium
import numpy
from gymnasium import spaces

NAN = float("nan")
FAULTY_SEED, FAULTY_STEP = 1, 3


class Faulty(gymnasium.Env):
    """What `fault` says of the observation (a Box of three floats), the reward, or the API."""

    observation_space = spaces.Box(-1, 1, (3,), numpy.float32)
    action_space = spaces.Discrete(2)
    good = numpy.zeros(3, numpy.float32)

    def __init__(self, fault="none", episode=6):
        self.fault, self.episode, self.seed = fault, episode, None

    def reset(self, *, seed=None, options=None):
        self.seed, self.time = self.seed if seed is None else seed, 0
        if self.fault == "nan_reset" and self.seed == FAULTY_SEED:
            return self.good * numpy.float32(NAN), {}
        return self.good if self.fault == "old_reset" else (self.good, {})

    def step(self, action):
        now = self.time == FAULTY_STEP and self.seed == FAULTY_SEED
        self.time += 1
        observation = self.bad(self.good) if now else self.good
        reward = {"nan_reward": NAN, "inf_reward": -numpy.inf, "none_reward": None, "vector_reward": numpy.ones(2),
                  "text_reward": "much"}.get(self.fault, 1.0) if now else 1.0  # fmt: skip
        if now and self.fault == "four":
            return observation, reward, False, {}
        if now and self.fault == "nothing":
            return None
        final = self.fault.startswith("final") and now
        return observation, reward, self.time == self.episode or final, False, {}

    def bad(self, good):
        return {
            "nan": numpy.array([0, NAN, 0], numpy.float32), "none": None, "final_none": None, "scalar": 0.5,
            "shape": numpy.zeros((3, 1), numpy.float32), "text": "left", "final_nan": good * numpy.float32(NAN),
            "list": [0.0, 0.0, 0.0], "float64": numpy.zeros(3),
        }.get(self.fault, good)  # fmt: skip

    def close(self):
        if self.fault == "close":
            raise RuntimeError("the door is stuck")


class FaultyCodes(Faulty):
    """The same where observations are codes, flags and bytes."""

    observation_space = spaces.Dict({"codes": spaces.MultiDiscrete([4, 4]), "flags": spaces.MultiBinary(2),
                                     "level": spaces.Discrete(3, start=1), "bytes": spaces.Box(0, 255, (2,), numpy.uint8)})  # fmt: skip
    good = {"codes": numpy.array([1, 3]), "flags": numpy.array([1, 0], numpy.int8), "level": 2,
            "bytes": numpy.array([7, 8], numpy.uint8)}  # fmt: skip

    def bad(self, good):
        change = {
            "codes": {"codes": numpy.array([9, -1])}, "fraction": {"codes": numpy.array([1.7, 0.0])},
            "flags": {"flags": numpy.array([2, 0], numpy.int8)}, "level": {"level": 4}, "level_fraction": {"level": 1.7},
            "wrapped": {"bytes": numpy.array([300, 0])}, "int32": {"codes": numpy.array([0, 2], numpy.int32)},
        }.get(self.fault, {})  # fmt: skip
        observation = {**good, **change}
        if self.fault == "missing":
            del observation["level"]
        return observation


def many_faulty(num_envs, autoreset_mode=None, **arguments):
    return gymnasium.vector.SyncVectorEnv([lambda: Faulty(**arguments)] * num_envs, autoreset_mode=autoreset_mode)
