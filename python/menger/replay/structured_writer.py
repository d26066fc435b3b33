"""Writes steps, and the items that patterns and conditions make of them."""

import collections
import dataclasses
import math
from typing import Any, Optional, Tuple

import numpy as np

from menger.replay import nest, specs


@dataclasses.dataclass(frozen=True)
class PatternNode:
    """Values of a column, counted back from the last step: x[stop] without a start, else x[start:stop:step]."""

    flat_source_index: int
    start: Optional[int] = None
    stop: Optional[int] = None
    step: Optional[int] = None

    @property
    def steps_back(self):
        return -(self.stop if self.start is None else self.start)

    @property
    def length(self):
        """Of values; None for a single one."""
        return None if self.start is None else math.ceil(((self.stop or 0) - self.start) / (self.step or 1))

    def offsets(self):
        """Which they are, from the last step on: -1 is that."""
        if self.start is None:
            return [self.stop]
        return list(range(self.start, self.stop or 0, self.step or 1))

    def check(self):
        if self.start is None and self.stop is None:
            raise ValueError("a pattern names no steps; it must have a start or a stop")
        if self.start is None and (self.stop >= 0 or self.step is not None):
            raise ValueError(f"a pattern of one value has stop {self.stop} and step {self.step}; it must be below 0, and none")
        if self.start is not None and not self.start < (self.stop or 0) <= 0:
            raise ValueError(f"a pattern has start {self.start} and stop {self.stop}; it must be start < stop <= 0")
        if self.step is not None and self.step < 1:
            raise ValueError(f"a pattern has step {self.step}; it must be at least 1")


@dataclasses.dataclass(frozen=True)
class ConditionNode:
    """Compares a number with one that is given: `left` modulo `modulus` (if any) is equal to `eq`, or at least `ge`."""

    left: str  # "step_index", "steps_since_applied", "buffer_length", "is_end_episode", "data".
    flat_source_index: int = 0  # Of "data".
    modulus: Optional[int] = None
    eq: Optional[int] = None
    ge: Optional[int] = None
    inverse: bool = False

    def check(self):
        if self.eq is None and self.ge is None:
            raise ValueError(f"a condition on {self.left} compares with nothing")
        if self.modulus is not None and (self.modulus < 1 or self.eq is None or self.eq < 0):
            raise ValueError(f"a condition on {self.left} has modulus {self.modulus} and {self.eq}; 1 or more, and 0 or more")

    def holds(self, value):
        if self.modulus is not None:
            value = int(math.fmod(value, self.modulus))
        return self.inverse != (value == self.eq if self.eq is not None else value >= self.ge)


@dataclasses.dataclass(frozen=True)
class Priority:
    """A constant, or the TD errors of an item's steps: weight * max |e| + (1 - weight) * mean |e| (Kapturowski et al. 2019)."""

    constant: float = 1.0
    max_priority_weight: Optional[float] = None
    flat_source_index: int = 0

    def value(self, errors):
        if self.max_priority_weight is None:
            return self.constant
        if errors is None:
            raise ValueError("the pattern of an item has no column of TD errors, by which its priority goes")
        sizes = np.abs(np.asarray(errors, np.float64))
        return float(self.max_priority_weight * sizes.max() + (1 - self.max_priority_weight) * sizes.mean())


@dataclasses.dataclass(frozen=True)
class Config:
    """Items of one pattern in one table, at steps at which all conditions hold."""

    flat: Tuple[PatternNode, ...]
    pattern_structure: Any  # With None at its leaves.
    table: str
    priority: Priority
    conditions: Tuple[ConditionNode, ...] = ()

    @property
    def steps_back(self):
        return max(node.steps_back for node in self.flat)

    def check(self):
        if not self.flat:
            raise ValueError("the pattern of a config is empty")
        if not self.table:
            raise ValueError("the table of a config has no name")
        for part in (*self.flat, *self.conditions):
            part.check()


# ---- How configs are made


class _ReferenceNode:
    def __init__(self, index):
        self._index = index

    def __getitem__(self, which):
        if isinstance(which, int):
            return PatternNode(self._index, stop=which)
        if isinstance(which, slice):
            start, stop = which.start, which.stop
            return PatternNode(self._index, start, 0 if start is not None and stop is None else stop, which.step)
        raise ValueError(f"a step's field is indexed by an int or a slice, not by {which!r}")


def create_reference_step(step_structure):
    """A structure like a step's, for patterns: its fields are indexed by how many steps back, as [-1] or [-3:]."""
    return nest.unflatten_as(step_structure, map(_ReferenceNode, range(len(nest.flatten(step_structure)))))


def pattern_from_transform(step_structure, transform):
    return transform(create_reference_step(step_structure))


def create_config(pattern, table, conditions=(), priority=None):
    structure = nest.map_structure(lambda _: None, pattern)
    return Config(tuple(nest.flatten(pattern)), structure, table, priority or Priority(), tuple(conditions))


def unpack_pattern(config):
    return nest.unflatten_as(config.pattern_structure, config.flat)


class _ConditionBuilder:
    __hash__ = None

    def __init__(self, node):
        self._node = node

    def __mod__(self, modulus):
        return _ConditionBuilder(dataclasses.replace(self._node, modulus=modulus))

    def __eq__(self, value):
        return dataclasses.replace(self._node, eq=value)

    def __ne__(self, value):
        return dataclasses.replace(self._node, eq=value, inverse=True)

    def __ge__(self, value):
        return dataclasses.replace(self._node, ge=value)

    def __gt__(self, value):
        return self >= value + 1

    def __lt__(self, value):
        return dataclasses.replace(self._node, ge=value, inverse=True)

    def __le__(self, value):
        return self < value + 1


class Condition:
    """What conditions compare."""

    @staticmethod
    def step_index():
        """Of the last step in its episode, from 0 on."""
        return _ConditionBuilder(ConditionNode("step_index"))

    @staticmethod
    def steps_since_applied():
        """Steps since the config made an item."""
        return _ConditionBuilder(ConditionNode("steps_since_applied"))

    @staticmethod
    def is_end_episode():
        """Holds in end_episode alone."""
        return ConditionNode("is_end_episode", eq=1)

    @staticmethod
    def data(step_structure):
        """The value of a field of the last step: an integer or a boolean."""
        count = len(nest.flatten(step_structure))
        builders = [_ConditionBuilder(ConditionNode("data", flat_source_index=index)) for index in range(count)]
        return nest.unflatten_as(step_structure, builders)


def constant_priority_fn(value):
    return Priority(constant=value)


def td_error(max_priority_weight, step_structure, get_field_from_step_fn):
    """By the TD errors that are a field of each step, and a column of the pattern."""
    indices = nest.unflatten_as(step_structure, range(len(nest.flatten(step_structure))))
    return Priority(max_priority_weight=max_priority_weight, flat_source_index=get_field_from_step_fn(indices))


# ---- What items of configs look like


def infer_signature(configs, step_spec):
    """The signature of the table that configs of one pattern structure write, for steps that are like `step_spec`."""
    if not configs:
        raise ValueError("At least one config must be provided.")
    if any(config.pattern_structure != configs[0].pattern_structure for config in configs):
        raise ValueError("All configs must have exactly the same pattern_structure.")
    tables = sorted({config.table for config in configs})
    if len(tables) > 1:
        raise ValueError(f"All configs must target the same table but provided configs included {', '.join(tables)}.")
    fields = nest.flatten(step_spec)
    paths = [path for path, _ in nest.flatten_with_path(configs[0].pattern_structure)]
    columns = [_merged(path, nodes, fields) for path, nodes in zip(paths, zip(*(config.flat for config in configs)))]
    return nest.unflatten_as(configs[0].pattern_structure, columns)


def _merged(path, nodes, fields):
    """The spec of a column that each config fills by another node."""
    dtypes = [fields[node.flat_source_index].dtype for node in nodes]
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise ValueError(f"Configs produce trajectories with multiple dtypes at {path}. Got {dtypes}.")
    shapes = []
    for node in nodes:
        shape = tuple(fields[node.flat_source_index].shape)
        shapes.append(shape if node.length is None else (node.length, *shape))
    if any(len(shape) != len(shapes[0]) or shape[1:] != shapes[0][1:] for shape in shapes):
        raise ValueError(f"Configs produce trajectories with incompatible shapes at {path}. Got {shapes}.")
    same = all(shape == shapes[0] for shape in shapes)
    shape = shapes[0] if same else (None, *shapes[0][1:])
    return specs.TensorSpec(shape, dtypes[0], "/".join(map(str, path)))


# ---- The writer


class _Progress:
    """Where a config stands."""

    def __init__(self, config):
        self.config = config
        self.steps_since_applied = 0
        self.applied_at = None  # Steps: (episode, step).
        self.counted_at = None


class StructuredWriter:
    """Made by Client.structured_writer: after each append it creates the items whose conditions hold."""

    def __init__(self, columns, configs):
        self._writer = columns  # A ColumnWriter.
        self._progress = [_Progress(config) for config in configs]
        self._kept = collections.Counter()  # How many values of each column the configs can name.
        for config in configs:
            for node in config.flat:
                self._kept[node.flat_source_index] = max(self._kept[node.flat_source_index], node.steps_back)
            for condition in config.conditions:
                if condition.left == "data":
                    self._kept[condition.flat_source_index] = max(self._kept[condition.flat_source_index], 1)
        self._structure = None
        self._history = {}  # By column: references of the last steps, None where there is no value.
        self._episode = 0
        self._step = -1  # Of the episode, the open one included.
        self._step_is_open = False

    @property
    def step_is_open(self):
        return self._step_is_open

    def append(self, data, *, partial_step=False):
        """A step, or a part of it; all have one structure, whose leaves may be None."""
        flat = nest.flatten(data)
        if self._structure is None:
            self._structure = nest.map_structure(lambda _: None, data)
        expected = len(nest.flatten(self._structure))
        if len(flat) != expected:
            raise ValueError(f"Flattened data has an unexpected length, got {len(flat)} but wanted {expected}.")
        used = [value if index in self._kept else None for index, value in enumerate(flat)]
        try:
            refs = self._writer.AppendPartial(used) if partial_step else self._writer.Append(used)
        except ValueError as error:
            raise ValueError(self._with_path(str(error))) from error
        self._remember(refs)
        self._step_is_open = partial_step
        self._apply(is_end=False)

    def _with_path(self, message):
        head, separator, tail = message.partition(" for column ")
        number, dot, rest = tail.partition(". ")
        if not separator or not dot or not number.isdigit():
            return message
        path = nest.flatten_with_path(self._structure)[int(number)][0]
        return f"{head} for column {number} (path={path}). {rest}"

    def _remember(self, refs):
        if not self._step_is_open:
            self._step += 1
        for index, kept in self._kept.items():
            history = self._history.setdefault(index, collections.deque(maxlen=kept))
            ref = refs[index] if index < len(refs) else None
            if not self._step_is_open:
                history.append(ref)
            elif ref is not None:
                history[-1] = ref

    def _apply(self, is_end):
        if all(not history or history[-1] is None for history in self._history.values()):
            return
        now = (self._episode, self._step)
        for progress in self._progress:
            if progress.applied_at == now:
                continue
            if progress.counted_at != now:
                progress.steps_since_applied += 1
                progress.counted_at = now
            columns = self._columns_for(progress, is_end)
            if columns is None:
                continue
            self._create(progress.config, columns)
            progress.applied_at = now
            progress.steps_since_applied = 0

    def _columns_for(self, progress, is_end):
        """References of each column of the item, or None if there is none to be made."""
        config = progress.config
        longest = max(len(history) for history in self._history.values())
        if longest < config.steps_back:
            return None
        for condition in config.conditions:
            value = self._left(condition, progress, is_end, longest)
            if value is None or not condition.holds(value):
                return None
        columns = []
        for node in config.flat:
            history = self._history[node.flat_source_index]
            refs = [history[offset] for offset in node.offsets()] if len(history) >= node.steps_back else [None]
            if any(ref is None for ref in refs):
                return None
            columns.append(refs)
        return columns

    def _left(self, condition, progress, is_end, longest):
        if condition.left == "step_index":
            return self._step
        if condition.left == "steps_since_applied":
            return progress.steps_since_applied
        if condition.left == "buffer_length":
            return longest
        if condition.left == "is_end_episode":
            return int(is_end)
        ref = self._history[condition.flat_source_index][-1]
        if ref is None or ref.dtype.kind not in "biu" or math.prod(ref.shape) != 1:
            return None
        return int(np.asarray(ref.numpy()).reshape(()))

    def _create(self, config, columns):
        errors = None
        if config.priority.max_priority_weight is not None:
            for node, refs in zip(config.flat, columns):
                if node.flat_source_index == config.priority.flat_source_index:
                    errors = [np.asarray(ref.numpy()).reshape(()) for ref in refs]
        self._writer.CreateItem(
            config.table, config.priority.value(errors), columns, [node.length is None for node in config.flat]
        )

    def flush(self, block_until_num_items=0, timeout_ms=None):
        if block_until_num_items < 0:
            raise ValueError(f"block_until_num_items is {block_until_num_items}; it must be at least 0")
        self._writer.Flush(block_until_num_items, timeout_ms)

    def end_episode(self, clear_buffers=True, timeout_ms=None):
        """Creates the items of an episode's end, waits until all are inserted, and begins a new episode."""
        self._apply(is_end=True)
        self._step_is_open = False
        self._episode += 1
        self._step = -1
        if clear_buffers:
            self._history.clear()
        self._writer.EndEpisode(clear_buffers, timeout_ms)


def make_writer(configs, make_columns):
    """`make_columns` makes the ColumnWriter of so many values to be kept."""
    if not configs:
        raise ValueError("At least one config must be provided.")
    for index, config in enumerate(configs):
        try:
            config.check()
        except ValueError as error:
            raise ValueError(f"config {index}: {error}") from error
    return StructuredWriter(make_columns(max(config.steps_back for config in configs)), configs)
