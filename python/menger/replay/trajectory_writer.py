"""Writes steps of any structure, and items that refer to them column by column."""

import itertools
import re

import numpy as np

from menger.replay import chunking, errors, nest


class TrajectoryWriter:
    """Made by Client.trajectory_writer.

        with client.trajectory_writer(num_keep_alive_refs=3) as writer:
            for step in steps:
                writer.append(step)
            writer.create_item("table", 1.0, {"last_two": writer.history["observation"][-2:]})

    `append` and `create_item` do not wait: items are inserted meanwhile, in their order; `flush` waits for that. One thread at a
    time.
    """

    def __init__(self, internal_writer):
        self._writer = internal_writer
        self._structure = None  # Of all steps so far: the number of its column at each leaf.
        self._columns = []  # _ColumnHistory of each column.
        self._history = None  # These in the structure, once somebody has asked for it.
        self._column_of = {}  # By path.
        self._configured = {}  # By path, of columns that have not come yet.
        self._step_is_open = False

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None or not issubclass(kind, errors.ReverbError):
            self.flush()

    def __del__(self):
        self.close()

    @property
    def history(self):
        """References to what was appended in this episode, structured as steps are; a column has a place for each step."""
        if not self._columns:
            raise RuntimeError("there is no history before the first append")
        if self._history is None:
            self._history = nest.map_structure(lambda column: self._columns[column], self._structure)
        return self._history

    @property
    def episode_steps(self):
        """Steps of this episode, without one that is open."""
        return self._writer.episode_steps

    def configure(self, path, *, num_keep_alive_refs, max_chunk_length):
        """How many values of the column at `path` are kept, and how long its chunks are; None: that is chosen."""
        if max_chunk_length is None:
            options = chunking.AutoTunedChunkerOptions(num_keep_alive_refs, 1.0)
        else:
            options = chunking.ConstantChunkerOptions(max_chunk_length, num_keep_alive_refs)
        if path in self._column_of:
            self._writer.ConfigureChunker(self._column_of[path], options)
        else:
            self._configured[path] = options

    def append(self, data, *, partial_step=False):
        """A step, or with `partial_step` a part of one, to which further calls add what it lacks.

        What the step's structure lacks, or has as None, has no value in it. Steps may bring new columns at any time. Raises
        ValueError for a value of another type or shape than its column's, or a second one in the same step.
        """
        leaves = nest.flatten_with_path(data)
        if self._structure is None or any(path not in self._column_of for path, _ in leaves):
            self._grow(nest.map_structure(lambda _: None, data))
        flat = [None] * len(self._columns)
        for path, value in leaves:
            flat[self._column_of[path]] = value
        if self._step_is_open:
            self._check_not_set(flat)
        try:
            refs = self._writer.AppendPartial(flat) if partial_step else self._writer.Append(flat)
        except ValueError as error:
            raise ValueError(self._with_path(str(error))) from error
        for column, ref in zip(self._columns, refs):
            if not self._step_is_open:
                column.append(ref)
            elif ref is not None:
                column.set_last(ref)
        self._step_is_open = partial_step

    def _check_not_set(self, flat):
        for column, value in zip(self._columns, flat):
            if value is not None and not column.can_set_last:
                raise ValueError(
                    f"Field {column.path} has already been set in the active step by previous (partial) append call and"
                    f" thus must be omitted or set to None but got: {value}"
                )

    def _with_path(self, message):
        """A message with the path of the column that it names by number."""
        return re.sub(r"(?<=for column )\d+", lambda number: str(self._columns[int(number[0])].path), message)

    def create_item(self, table, priority, trajectory):
        """An item of `table`: a structure of TrajectoryColumn. It is inserted as soon as the table takes it."""
        columns = nest.flatten(trajectory)
        if not all(isinstance(column, TrajectoryColumn) for column in columns):
            raise TypeError(f"all leaves of a trajectory must be TrajectoryColumn, but it is {trajectory}")
        self._writer.CreateItem(table, priority, [list(each) for each in columns], [each.is_squeezed for each in columns])

    def flush(self, block_until_num_items=0, timeout_ms=None):
        """Until no more than `block_until_num_items` items are not known to be inserted.

        Raises DeadlineExceededError after `timeout_ms`; insertion goes on all the same.
        """
        if block_until_num_items < 0:
            raise ValueError(f"block_until_num_items is {block_until_num_items}; it must be at least 0")
        self._writer.Flush(block_until_num_items, -1 if timeout_ms is None else timeout_ms)

    def end_episode(self, clear_buffers=True, timeout_ms=None):
        """Waits until all items are inserted, and begins a new episode: without a history, if `clear_buffers`."""
        try:
            self._writer.EndEpisode(clear_buffers, timeout_ms)
        finally:
            self._step_is_open = False
            if clear_buffers:
                for column in self._columns:
                    column.reset()

    def close(self):
        """Items that are not known to be inserted may be lost: see `flush`."""
        self._writer.Close()

    def _grow(self, data):
        """Gives the structure what it lacks of `data`, whose leaves are None."""
        structure = data if self._structure is None else _union(self._structure, data)
        leaves = [self._column_at(path, column) for path, column in nest.flatten_with_path(structure)]
        self._structure = nest.unflatten_as(structure, leaves)
        self._history = None

    def _column_at(self, path, column):
        if column is not None:
            return column
        column = len(self._columns)
        self._column_of[path] = column
        steps = len(self._columns[0]) if self._columns else 0
        self._columns.append(_ColumnHistory(path, self._writer.max_num_keep_alive_refs, steps))
        if path in self._configured:
            self._writer.ConfigureChunker(column, self._configured.pop(path))
        return column


class _ColumnHistory:
    """References to the values of one column, one place a step: None where it had no value, or is kept no longer."""

    def __init__(self, path, kept_max, steps=0):
        self._path = path
        self._kept_max = kept_max
        self._kept = [None] * min(kept_max, steps)
        self._dropped = steps - len(self._kept)

    @property
    def path(self):
        return self._path

    def append(self, ref):
        self._kept.append(ref)
        if len(self._kept) > self._kept_max:
            del self._kept[0]
            self._dropped += 1

    def reset(self):
        self._kept = []
        self._dropped = 0

    @property
    def can_set_last(self):
        return bool(self._kept) and self._kept[-1] is None

    def set_last(self, ref):
        if not self.can_set_last:
            raise RuntimeError("the last step has a value already, or there is none")
        self._kept[-1] = ref

    def _at(self, step):
        if not -len(self) <= step < len(self):
            raise IndexError(f"step {step} of {len(self)}")
        step %= len(self)
        return self._kept[step - self._dropped] if step >= self._dropped else None

    def __len__(self):
        return self._dropped + len(self._kept)

    def __iter__(self):
        yield from itertools.repeat(None, self._dropped)
        yield from self._kept

    def __getitem__(self, which):
        path = (*self._path, which)
        if isinstance(which, (int, np.integer)):
            return TrajectoryColumn([self._at(int(which))], squeeze=True, path=path)
        if isinstance(which, slice):
            return TrajectoryColumn([self._at(step) for step in range(*which.indices(len(self)))], path=path)
        if isinstance(which, list):
            return TrajectoryColumn([self._at(step) for step in which], path=path)
        raise TypeError(f"a history is indexed by ints, slices and lists, not by {type(which)}")

    def __repr__(self):
        return f"{type(self).__name__}(path={self._path}, steps={len(self)})"


class TrajectoryColumn:
    """Values of one column of an item; a squeezed one has one, and no dimension of time."""

    def __init__(self, data_references, *, squeeze=False, path=None):
        refs = tuple(data_references)
        if squeeze and len(refs) != 1:
            raise ValueError(f"a squeezed column has exactly one value, not {len(refs)}")
        if any(ref is None for ref in refs):
            raise ValueError(
                f"a TrajectoryColumn cannot contain any None: at path {path} steps have no value, or are kept no longer"
            )
        self._refs = refs
        self.is_squeezed = squeeze

    def __len__(self):
        return len(self._refs)

    def __iter__(self):
        return iter(self._refs)

    def __getitem__(self, which):
        if isinstance(which, int):
            return TrajectoryColumn([self._refs[which]], squeeze=True)
        if isinstance(which, slice):
            return TrajectoryColumn(self._refs[which])
        if isinstance(which, list):
            return TrajectoryColumn([self._refs[each] for each in which])
        raise TypeError(f"a TrajectoryColumn is indexed by ints, slices and lists, not by {type(which)}")

    @property
    def shape(self):
        shape = tuple(self._refs[0].shape)
        return shape if self.is_squeezed else (len(self._refs), *shape)

    @property
    def dtype(self):
        return self._refs[0].dtype

    def numpy(self):
        if any(ref.expired for ref in self._refs):
            raise RuntimeError("a column refers to values that have expired")
        if self.is_squeezed:
            return self._refs[0].numpy()
        return np.stack([ref.numpy() for ref in self._refs])


def _union(ours, theirs):
    """What either structure has; leaves of ours stay."""
    if ours is None or isinstance(ours, int):
        return ours
    if nest.is_named_tuple(ours):
        return type(ours)(**_union(ours._asdict(), theirs._asdict()))
    if isinstance(ours, (list, tuple)):
        pairs = itertools.zip_longest(ours, theirs)
        return type(ours)(b if a is None else _union(a, b) for a, b in pairs)
    merged = dict(ours)
    for key, value in theirs.items():
        merged[key] = _union(ours[key], value) if key in ours else value
    return merged
