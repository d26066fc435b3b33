"""The module of somebody who follows docs/environments.md: an environment that one learns in, and that can be filmed."""

import gymnasium
import numpy


class MyEnvironment(gymnasium.Env):
    """Walk right, `size` steps, before twice as many are over."""

    metadata = {"render_modes": ["rgb_array"]}
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, size=5, render_mode=None):
        self.size, self.render_mode = size, render_mode
        self.observation_space = gymnasium.spaces.Box(-2 * size, size, (1,), numpy.float32)

    def observe(self):
        return numpy.array([self.place], numpy.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = self.place = 0
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        self.place += 1 if action else -1
        there, late = self.place == self.size, self.steps == 2 * self.size
        return self.observe(), float(there), there, late and not there, {"is_success": there}

    def render(self):
        return numpy.full((16, 16, 3), 8 * max(0, self.place), numpy.uint8)
