"""Writes values to numbered columns, and items of them: what the writers with structures are made of."""

import numpy as np

from menger.replay import items, nest, specs

_ANY_TEXT = np.dtype("S")
# Names of types in messages.
_TYPE_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


def _name(dtype):
    return "string" if dtype.kind == "S" else _TYPE_NAMES.get(dtype.name, dtype.name)


def _text(shape):
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


class CellRef:
    """A value that was appended, while its column remembers it."""

    __slots__ = ("_column", "_number", "native", "row", "_array_type")

    def __init__(self, column, number, native, row, dtype):
        self._column = column
        self._number = number
        self.native = native  # The library's column,
        self.row = row  # and the row there.
        self._array_type = dtype

    @property
    def shape(self):
        return self._column.shape

    @property
    def dtype(self):
        return self._array_type

    @property
    def expired(self):
        return not self._column.remembers(self._number)

    def numpy(self):
        if self.expired:
            raise RuntimeError("the value of an expired reference was asked for")
        array = np.empty(self.shape, self._array_type)
        if array.size:
            self._column.read(self, array)
        return array[()] if self.shape == () else array


class Column:
    """One column: its first value says what the others must be."""

    def __init__(self, writer, index, options):
        self._writer = writer
        self._index = index
        self.options = options
        self.dtype = None
        self.shape = None
        self._natives = {}  # By row_bytes: (the library's column, what it is). Texts have several.
        self._count = 0
        self._oldest = 0

    def check(self, array):
        if self.dtype is None:
            return
        same_text = array.dtype.kind == "S" == self.dtype.kind and self.shape == ()
        if array.dtype != self.dtype and not same_text:
            raise ValueError(
                f"Tensor of wrong dtype provided for column {self._index}. Got {_name(array.dtype)} but expected"
                f" {_name(self.dtype)}."
            )
        if array.shape != self.shape:
            raise ValueError(
                f"Tensor of incompatible shape provided for column {self._index}. Got {_text(array.shape)} which is"
                f" incompatible with {_text(self.shape)}."
            )

    def native_for(self, array):
        """The library's column for a value that was checked."""
        if self.dtype is None:
            self.dtype, self.shape = array.dtype, array.shape
        row_bytes = max(1, array.nbytes)
        found = self._natives.get(row_bytes)
        if found is None:
            kind = (row_bytes, self.options.chunk_rows(row_bytes), self.options.num_keep_alive_refs)
            found = self._natives[row_bytes] = (self._writer.native.take_column(*kind), kind)
        return found[0]

    def appended(self, native, row, dtype):
        self._count += 1
        return CellRef(self, self._count - 1, native, row, dtype)

    def remembers(self, number):
        return not self._writer.closed and number >= max(self._oldest, self._count - self.options.num_keep_alive_refs)

    def read(self, ref, array):
        self._writer.native.read(ref.native, ref.row, array)

    def forget(self):
        self._oldest = self._count

    def configure(self, options):
        """From the next value on."""
        self.give_back()
        self.options = options

    def give_back(self):
        for native, kind in self._natives.values():
            self._writer.native.give_column(native, *kind)
        self._natives = {}


class ColumnWriter:
    """Appends values to columns, step by step, and creates items. Names are those by which Reverb's own writers call theirs."""

    def __init__(self, client, options, validate_items=True):
        self._client = client  # A NativeClient.
        self._options = options
        self._validate = validate_items
        self._columns = []
        self._overrides = {}
        self._set_in_step = set()
        self._step_is_open = False
        self._signatures = {}
        self.native = client.take_writer()
        self.closed = False
        self.episode_steps = 0

    @property
    def max_num_keep_alive_refs(self):
        every = [self._options, *self._overrides.values()]
        return max(options.num_keep_alive_refs for options in every)

    @property
    def step_is_open(self):
        return self._step_is_open

    @property
    def pending(self):
        return 0 if self.closed else self.native.pending

    def ConfigureChunker(self, column, options):  # noqa: N802
        self._overrides[column] = options
        if column < len(self._columns):
            self._columns[column].configure(options)

    def Append(self, flat):  # noqa: N802
        refs = self.AppendPartial(flat)
        self._close_step()
        return refs

    def AppendPartial(self, flat):  # noqa: N802
        """Values of columns, None where there is none; returns a reference for each."""
        self._check_open()
        while len(self._columns) < len(flat):
            index = len(self._columns)
            self._columns.append(Column(self, index, self._overrides.get(index, self._options)))
        given = [(index, items.row_of(value)) for index, value in enumerate(flat) if value is not None]
        for index, array in given:
            if index in self._set_in_step:
                raise ValueError(f"column {index} has a value in this step already")
            self._columns[index].check(array)
        refs = [None] * len(flat)
        if given:
            natives = [self._columns[index].native_for(array) for index, array in given]
            rows = self.native.append(natives, [array if array.nbytes else np.zeros(1, np.uint8) for _, array in given])
            for (index, array), native, row in zip(given, natives, rows):
                refs[index] = self._columns[index].appended(native, row, array.dtype)
        self._set_in_step.update(index for index, _ in given)
        self._step_is_open = True
        return refs

    def _close_step(self):
        self._set_in_step.clear()
        if self._step_is_open:
            self.episode_steps += 1
        self._step_is_open = False

    def CreateItem(self, table, priority, refs_per_column, squeezed):  # noqa: N802
        """An item of columns of references."""
        self._check_open()
        index, notes = self._client.table(table)
        columns = []
        for refs, is_squeezed in zip(refs_per_column, squeezed):
            self._check_column(refs)
            columns.append((refs[0].dtype, refs[0].shape, is_squeezed))
        if self._validate and notes.signature is not None:
            lengths = [None if is_squeezed else len(refs) for refs, is_squeezed in zip(refs_per_column, squeezed)]
            self._check_signature(table, notes.signature, columns, lengths)
        self.add_item(index, priority, refs_per_column, columns)

    @staticmethod
    def _check_column(refs):
        if not refs:
            raise ValueError("a column of an item has no values; it must have at least one")
        if any(ref.expired for ref in refs):
            raise RuntimeError("an item refers to values that have expired: num_keep_alive_refs is how many are kept")
        first = refs[0]
        for ref in refs:
            same_text = ref.dtype.kind == "S" == first.dtype.kind and first.shape == ()
            if (ref.dtype != first.dtype and not same_text) or ref.shape != first.shape:
                raise ValueError(
                    f"a column of an item has values of {_name(first.dtype)} {_text(first.shape)} and of"
                    f" {_name(ref.dtype)} {_text(ref.shape)}; they must be alike"
                )

    def _check_signature(self, table, signature, columns, lengths):
        expected = self._signatures.get(table)
        if expected is None:
            expected = self._signatures[table] = nest.flatten_with_path(signature)
        shapes = [shape if length is None else (length, *shape) for (_, shape, _), length in zip(columns, lengths)]
        check_signature(table, expected, [dtype for dtype, _, _ in columns], shapes)

    def add_item(self, table_index, priority, refs_per_column, columns):
        """As CreateItem, of what was checked. `columns`: (type, shape, is_squeezed) of each."""
        told = tuple(
            (_ANY_TEXT if dtype.kind == "S" and shape == () else dtype, shape, is_squeezed)
            for dtype, shape, is_squeezed in columns
        )
        description = self.native.describe(told)
        ranges = []
        for refs in refs_per_column:
            ranges.append((0, 1, description))
            ranges.extend(_ranges(refs))
        self.native.add(table_index, float(priority), ranges)

    def Flush(self, ignore_last_num_items=0, timeout_ms=None):  # noqa: N802
        self._check_open()
        seconds = None if timeout_ms is None or timeout_ms <= 0 else timeout_ms / 1000
        self.native.wait(ignore_last_num_items, seconds)

    def EndEpisode(self, clear_buffers=True, timeout_ms=None):  # noqa: N802
        self._check_open()
        self._set_in_step.clear()
        self._step_is_open = False
        self.episode_steps = 0
        if clear_buffers:
            for column in self._columns:
                column.forget()
        self.native.wait(0, None if timeout_ms is None else timeout_ms / 1000)

    def Close(self):  # noqa: N802
        """Items that are not in their tables a moment later may be lost."""
        if self.closed:
            return
        self.closed = True
        self.native.settle()
        for column in self._columns:
            column.give_back()
        if self.native.may_be_used_again():
            self._client.give_writer(self.native)
        else:
            self.native.close()

    def __del__(self):
        if hasattr(self, "closed"):
            self.Close()

    def _check_open(self):
        if self.closed:
            raise RuntimeError("this writer was closed")


def check_signature(table, expected, dtypes, shapes):
    """Raises ValueError where columns are not as the table's signature has them: (path, spec) of each."""
    if len(expected) != len(dtypes):
        raise ValueError(
            f"an item of {len(dtypes)} columns for table '{table}', whose signature has {len(expected)}:"
            f" {', '.join(str(path) for path, _ in expected)}"
        )
    for (path, spec), dtype, shape in zip(expected, dtypes, shapes):
        same_type = dtype == spec.dtype or dtype.kind == "S" == spec.dtype.kind
        if not same_type or not specs.shapes_match(spec.shape, shape):
            raise ValueError(
                f"an item's column at {path} is {_name(dtype)} {_text(shape)}; the signature of table '{table}' has"
                f" {_name(spec.dtype)} {_text(spec.shape)}"
            )


def _ranges(refs):
    """References as (first row, rows, the library's column), runs together."""
    ranges = []
    first, count, native = refs[0].row, 0, refs[0].native
    for ref in refs:
        if ref.native == native and ref.row == first + count:
            count += 1
            continue
        ranges.append((first, count, native))
        first, count, native = ref.row, 1, ref.native
    ranges.append((first, count, native))
    return ranges
