"""Environments for tests of the Python host: every space, every kind of trouble."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import gymnasium
import numpy
from gymnasium import spaces


class Spaces(gymnasium.Env):
    """Every kind of observation leaf, each a plain function of the step; actions come back in the reward."""

    def __init__(self, episode=5):
        self.episode = episode
        self.observation_space = spaces.Dict({
            "action_mask": spaces.MultiBinary(3),
            "level": spaces.Discrete(4, start=2),
            "pair": spaces.Tuple((spaces.MultiDiscrete([3, 9]), spaces.Box(0, 255, (2, 2), numpy.uint8))),
            "position": spaces.Box(-1.0, numpy.inf, (2,), numpy.float64),
            "switches": spaces.MultiBinary([2, 2]),
        })  # fmt: skip
        self.action_space = spaces.Discrete(3, start=-1)

    def observe(self):
        t = self.time
        return {
            "action_mask": numpy.array([1, t % 2, 0], numpy.int8) * (t < self.episode),  # Nothing when it is over.
            "level": 2 + t % 4,
            "pair": (numpy.array([t % 3, t % 9]), numpy.full((2, 2), t, numpy.uint8)),
            "position": numpy.array([t + 0.5, self.start]),
            "switches": numpy.array([[t % 2, 0], [1, 1]], numpy.int8),
        }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.start = float(self.np_random.integers(1000)) if seed is None else float(seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        info = {"luck": 0.25 * self.time, "success": numpy.bool_(True)}
        return self.observe(), 10 * action, self.time == self.episode, False, info


class Trouble(gymnasium.Env):
    """What happens to the environment seeded with `victim` at its step of number `step`."""

    observation_space = spaces.Box(-1, 1, (1,), numpy.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, trouble="none", step=3, victim=1):
        self.trouble, self.at, self.victim = trouble, step, victim
        self.seed, self.time = None, 0

    def reset(self, *, seed=None, options=None):
        self.seed = self.seed if seed is None else seed
        self.time = 0
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        if self.time == self.at and self.seed == self.victim:
            self.happen()
        self.time += 1
        return numpy.full(1, self.time / 100, numpy.float32), 1.0, False, False, {}

    def happen(self):
        if self.trouble == "raise":
            raise ValueError("the wheel came off")
        if self.trouble == "exit":
            sys.exit("enough")
        if self.trouble == "vanish":
            os._exit(9)
        if self.trouble == "segfault":
            ctypes.string_at(0)
        if self.trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "hang":
            time.sleep(600)
        if self.trouble == "signals":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                os.kill(os.getpid(), number)
            self.end_children()

    def end_children(self):
        """Processes of the environment's own end when they are told to."""
        started = subprocess.Popen(["sleep", "600"])
        started.terminate()
        forked = os.fork()
        if forked == 0:
            time.sleep(600)
            os._exit(0)
        time.sleep(0.05)
        os.kill(forked, signal.SIGTERM)
        assert started.wait() == -signal.SIGTERM
        assert os.waitpid(forked, 0)[1] == signal.SIGTERM


class Pictures(gymnasium.Env):
    """Images in Gymnasium's layout: each byte says where it is, and one corner when."""

    def __init__(self, shape=(6, 5, 3), episode=2):
        self.shape, self.episode = tuple(shape), episode
        self.observation_space = spaces.Box(0, 255, self.shape, numpy.uint8)
        self.action_space = spaces.Discrete(2)

    def observe(self):
        observation = numpy.arange(numpy.prod(self.shape)).reshape(self.shape).astype(numpy.uint8)
        observation[(0,) * len(self.shape)] = 100 + self.time
        return observation

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        return self.observe(), 1.0, self.time == self.episode, False, {}


class Lucky(gymnasium.Env):
    """Only the one that was seeded with 1 has success, and only seeds above 1 a number of luck."""

    observation_space = spaces.Box(-1, 1, (1,), numpy.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, episode=1, reset_seconds=0.0):
        self.episode, self.reset_seconds, self.seed = episode, reset_seconds, None

    def reset(self, *, seed=None, options=None):
        time.sleep(self.reset_seconds)
        self.seed = self.seed if seed is None else seed
        self.time = 0
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.time += 1
        info = {"luck": 0.5 if self.seed > 1 else numpy.nan}
        if self.seed == 1:
            info["success"] = 1.0
        return numpy.zeros(1, numpy.float32), 1.0, self.time == self.episode, False, info


class Idle(gymnasium.Env):
    """Does nothing: what remains is the cost of hosting."""

    observation_space = spaces.Box(-1, 1, (4,), numpy.float32)
    action_space = spaces.Discrete(2)
    _observation = numpy.zeros(4, numpy.float32)

    def reset(self, *, seed=None, options=None):
        return self._observation, {}

    def step(self, action):
        return self._observation, 1.0, False, False, {}


class Unseen(gymnasium.Env):
    """Spaces that no slab holds."""

    def __init__(self, observation="text", action="discrete"):
        known = {"text": spaces.Text(5), "graph": spaces.Sequence(spaces.Discrete(2)), "box": spaces.Box(0, 1, (1,)),
                 "dict": spaces.Dict({"a": spaces.Discrete(2)}), "discrete": spaces.Discrete(2)}  # fmt: skip
        self.observation_space = spaces.Dict({"inner": known[observation]})
        self.action_space = known[action]


def many(num_envs, autoreset_mode=None):
    """CartPole as a vector environment."""
    return gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * num_envs, autoreset_mode=autoreset_mode)


def many_lucky(num_envs, autoreset_mode=None):
    return gymnasium.vector.SyncVectorEnv([Lucky] * num_envs, autoreset_mode=autoreset_mode)


def next_step_only(num_envs):
    return gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * num_envs)


number = 5  # Not an environment.

gymnasium.register("HostExample-v0", entry_point=Trouble, max_episode_steps=7, reward_threshold=4.5)
