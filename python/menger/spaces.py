"""Gymnasium's spaces as the leaves of a slab: what each is called there, how its values go in and how actions come out."""

import math

import numpy
from gymnasium import spaces

from menger.control import Failure, Refused
from menger.values import shown, stored_batch, stored_value

# What a slab can hold, and what becomes of the rest. Nothing is lost but half precision's name.
_STORED = {
    "bool": "uint8", "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float16": "float32",
    "uint8": "uint8", "int32": "int32", "int64": "int64", "float32": "float32", "float64": "float64",
}  # fmt: skip

_CHANNELS_MAX = 4  # Of an image: colours and one more, or as many frames.
_GRAY_SIZE_MIN = 16  # A smaller array of bytes without channels is a table rather than an image.

_ACTION_MASK = "action_mask"  # The leaf that says which actions are allowed goes by this name.


class Leaf:
    """One array of the slab: `path` leads to it in what the environment returns, `offset` is taken off its values.

    Menger has images as [channels, height, width]; `axes` (None: no image) are those axes in the environment's order.
    """

    def __init__(self, name, path, space, dtype, shape, kind, low=(), high=(), counts=(), offset=None, axes=None):
        self.name, self.path, self.space, self.offset = name, path, space, offset
        self.dtype, self.shape, self.kind = dtype, tuple(shape), kind
        self.low, self.high, self.counts = low, high, counts
        self.axes = axes
        self.storage = numpy.dtype(dtype)

    def describe(self):
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape), "space": self.kind,
                "low": list(self.low), "high": list(self.high), "counts": list(self.counts)}  # fmt: skip

    def users_view(self, rows):
        """A view of the slab's rows [row, column, ...] whose values look like what the environment returns."""
        if self.axes is None:
            return rows
        if len(self.axes) == 2:  # No channels.
            return rows[:, :, 0]
        return rows.transpose(0, 1, *(2 + axis for axis in self.axes))

    def entry(self, observation):
        """This leaf's part of what the environment returns; Refused where there is none."""
        for key in self.path:
            try:
                observation = observation[key]
            except (KeyError, IndexError, TypeError):
                raise Refused(f"its observation has no entry {key!r}, which its '{self.name}' needs: it is "
                              f"{shown(observation)}") from None  # fmt: skip
        return observation

    def value(self, observation):
        """This leaf's part of an observation, as the slab has it; Refused where it is no element of the leaf's kind."""
        value = stored_value(self.entry(observation), self.name, self.users_shape, self.storage)
        return self._placed(value, self.shape)

    def batch(self, observations, count):
        """The same for a batch, whose first dimension is the environments."""
        values = stored_batch(self.entry(observations), self.name, (count, *self.users_shape), self.storage)
        return self._placed(values, (count, *self.shape))

    def _placed(self, value, shape):
        if self.offset is not None:
            value = value - self.offset
        return numpy.reshape(value, shape) if self.kind == "multi_discrete" else value

    @property
    def users_shape(self):
        """The shape that the environment's values have."""
        return tuple(self.space.shape or ())

    @property
    def plain(self):
        """Whether the observation itself is what is stored: no path, no arithmetic."""
        return not self.path and self.offset is None and self.kind != "multi_discrete"


def observation_leaves(space, actions=0):
    """All leaves of an observation space that can be learned from, in its order."""
    leaves = [_leaf(entry, name, path) for name, path, entry in _entries(space, "observation", ()) if not _is_text(entry)]
    if not leaves:
        raise Failure("its observation space has nothing but Text, of which nothing is learned")
    for leaf in leaves:
        flags = leaf.kind == "mask" or (leaf.dtype in ("uint8", "int32") and set(leaf.low) == {0} and set(leaf.high) == {1})
        if actions and leaf.path == (_ACTION_MASK,) and leaf.shape == (actions,) and flags:
            leaf.name, leaf.kind, leaf.dtype, leaf.low, leaf.high = _ACTION_MASK, "mask", "uint8", (), ()
            leaf.storage = numpy.dtype("uint8")
    return leaves


def left_out(space):
    """The names of the leaves that are not learned from."""
    return [name for name, _, entry in _entries(space, "observation", ()) if _is_text(entry)]


def _is_text(space):
    """Text, and spaces of a package's own that hold texts, as MiniGrid's missions."""
    return isinstance(space, spaces.Text) or space.dtype == numpy.dtype(str)


def _entries(space, name, path):
    """(name, path, space) of everything in a space that holds no other spaces, in its order."""
    if isinstance(space, spaces.Dict):
        for key, entry in space.spaces.items():
            yield from _entries(entry, f"{name}/{key}", (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, entry in enumerate(space.spaces):
            yield from _entries(entry, f"{name}/{index}", (*path, index))
    else:
        yield name, path, space


def _image(space, name, path):
    """The leaf of an image as Gymnasium has them, [height, width, channels] or [height, width]; else None."""
    shape = space.shape
    if space.dtype != numpy.uint8:
        return None
    if len(shape) == 3 and shape[2] <= _CHANNELS_MAX < min(shape[:2]):
        axes, low, high = (1, 2, 0), space.low.transpose(2, 0, 1), space.high.transpose(2, 0, 1)
    elif len(shape) == 2 and min(shape) >= _GRAY_SIZE_MIN:
        axes, low, high = (1, 2), space.low[None], space.high[None]
    else:
        return None
    return Leaf(name, path, space, "uint8", low.shape, "box", _bounds(low), _bounds(high), axes=axes)


def _leaf(space, name, path):
    if isinstance(space, spaces.Box):
        stored = _STORED.get(space.dtype.name)
        if stored is None:
            raise Failure(f"{name}: a Box of {space.dtype.name} is not supported; use one of {', '.join(_STORED)}")
        image = _image(space, name, path)
        if image is not None:
            return image
        return Leaf(name, path, space, stored, space.shape, "box", _bounds(space.low), _bounds(space.high))
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return Leaf(name, path, space, "int64", (), "discrete", counts=[int(space.n)], offset=start or None)
    if isinstance(space, spaces.MultiDiscrete):
        start = numpy.asarray(getattr(space, "start", 0))
        return Leaf(name, path, space, "int64", (space.nvec.size,), "multi_discrete",
                    counts=[int(n) for n in space.nvec.flat], offset=start if start.any() else None)  # fmt: skip
    if isinstance(space, spaces.MultiBinary):
        return Leaf(name, path, space, "uint8", space.shape, "mask")
    raise Failure(f"{name}: the space {type(space).__name__} is not supported; there are Box, Discrete, MultiDiscrete, "
                  "MultiBinary, and Dict and Tuple of these")  # fmt: skip


def _bounds(values):
    """One bound where all are the same; infinities as JSON can say them."""
    flat = numpy.asarray(values, dtype=numpy.float64).ravel()
    if flat.size and (flat == flat[0]).all():
        flat = flat[:1]
    return [float(v) if math.isfinite(v) else ("inf" if v > 0 else "-inf") for v in flat]


def action_leaf(space):
    """The leaf of an action space: algorithms take one."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        raise Failure(f"the action space {type(space).__name__} is not supported: algorithms take one Discrete, MultiDiscrete, "
                      "MultiBinary or Box; wrap the environment so that it has one of these")  # fmt: skip
    if isinstance(space, spaces.MultiBinary):
        count = int(numpy.prod(space.shape))
        return Leaf("action", (), space, "int64", (count,), "multi_discrete", counts=[2] * count)
    if isinstance(space, spaces.Box) and not numpy.issubdtype(space.dtype, numpy.floating):
        raise Failure(f"the action space is a Box of {space.dtype.name}; algorithms take a Box of floats, or MultiDiscrete")
    try:
        leaf = _leaf(space, "action", ())
    except Failure as failure:
        raise Failure(str(failure).replace("there are Box", "actions may be Box").replace(
            ", and Dict and Tuple of these", "")) from None  # fmt: skip
    if leaf.kind == "box":
        leaf.dtype = "float32"  # What policies write, whatever the environment takes.
    return leaf


def action_reader(leaf, clip):
    """A function from a row of the slab's action array to a list of actions, one an environment.

    Arrays are copies: an environment may keep its action. Whole numbers are Python's: environments check those fastest.
    """
    space = leaf.space
    if leaf.kind == "discrete":
        return (lambda row: (row + leaf.offset).tolist()) if leaf.offset is not None else (lambda row: row.tolist())
    return lambda row, batch=batch_action_reader(leaf, clip): list(batch(row))


def batch_action_reader(leaf, clip):
    """The same for environments that step as one batch: a function from a row to one array."""
    space = leaf.space
    if leaf.kind == "discrete":
        return lambda row: row + (leaf.offset or 0)
    if leaf.kind == "multi_discrete":
        offset = 0 if leaf.offset is None else leaf.offset
        return lambda row: (row.reshape(-1, *space.shape) + offset).astype(space.dtype)
    if clip:
        low, high = space.low, space.high
        return lambda row: numpy.clip(row, low, high).astype(space.dtype, copy=False)
    return lambda row: row.astype(space.dtype)


def mask_index(leaves):
    """Which of the leaves says what actions are allowed; None if none does."""
    return next((index for index, leaf in enumerate(leaves) if leaf.name == _ACTION_MASK), None)


def random_action(space, random, mask=None):
    """A uniform action from a stream of the caller's: the space's own generator stays as the user has it. `mask` has a flag for
    each of a Discrete's actions: those that are 0 are not drawn."""
    name = type(space).__name__
    if name == "Discrete":
        if mask is None:
            return int(space.start) + int(random.integers(space.n))
        allowed = numpy.flatnonzero(mask)
        if not allowed.size:
            raise Refused(f"its '{_ACTION_MASK}' allows none of its {space.n} actions; it must allow one")
        return int(space.start) + int(allowed[random.integers(allowed.size)])
    if name == "MultiDiscrete":
        return (random.integers(space.nvec) + getattr(space, "start", 0)).astype(space.dtype)
    if name == "MultiBinary":
        return random.integers(2, size=space.shape).astype(space.dtype)
    low = numpy.maximum(space.low, -1e6)  # Unbounded actions: as wide as makes sense to nobody.
    high = numpy.minimum(space.high, 1e6)
    low = numpy.where(numpy.isfinite(space.low), low, -1.0)
    high = numpy.where(numpy.isfinite(space.high), high, 1.0)
    return random.uniform(low, high).astype(space.dtype)
