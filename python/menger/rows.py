"""The block's part of the slab as NumPy views, made once: the host writes its rows in place."""

import mmap

import numpy

_FLAGS = ("is_first", "terminated", "truncated", "episode_end", "valid")


class Rows:
    """Arrays of the block's columns: one view a row, so that a step makes none.

    `observation[leaf][row]` for rows 0..T; `final[leaf][row]`, `action[row]`, `reward[row]` (a memoryview: fastest for single
    numbers), `final_index[row]` and the flags for 0..T-1. All begin at the block's first column. Observations are seen in the
    environment's own layout, whatever the slab's.
    """

    def __init__(self, attachment, observation_leaves, action):
        group, slab = attachment["group"], attachment["slab"]
        self.count, self.horizon = group["count"], slab["horizon"]
        self.first_slot, self.positions = group["first_position"], slab["positions"]
        self._memory = mmap.mmap(attachment["descriptor"], attachment["bytes"])
        self._first = group["first_position"]
        arrays = {(array["part"], array["leaf"]): array for array in attachment["arrays"]}
        self._arrays = arrays

        steps = self.horizon
        self.observation, self.final = [], []
        for i, leaf in enumerate(observation_leaves):
            rows = self._view("observation", i, leaf.dtype, leaf.shape, steps + 1)
            self.observation.append(list(leaf.users_view(rows)))
            rows = self._view("final_observation", i, leaf.dtype, leaf.shape, steps)
            self.final.append(list(leaf.users_view(rows)))
        self.action = list(self._view("action", 0, action.dtype, action.shape, steps))
        self.reward_arrays = list(self._view("reward", 0, "float64", (), steps))
        self.reward = [memoryview(row) for row in self.reward_arrays]
        self.final_index = list(self._view("final_index", 0, "int32", (), steps))
        for flag in _FLAGS:
            rows = steps + 1 if flag == "is_first" else steps
            setattr(self, flag, list(self._view(flag, 0, "uint8", (), rows)))

    def slot(self, row, i):
        """Where the final observation of a row and column lies."""
        return row * self.positions + self.first_slot + i

    def _view(self, part, leaf, dtype, shape, rows):
        array = self._arrays[part, leaf]
        dtype = numpy.dtype(dtype)
        inner = numpy.empty(shape, dtype).strides
        offset = array["offset"] + self._first * array["item"]
        strides = (array["row"], array["item"], *inner)
        return numpy.ndarray((rows, self.count, *shape), dtype, self._memory, offset, strides)
