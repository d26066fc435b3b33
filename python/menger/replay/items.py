"""What items of a table are: columns of arrays, and the description that lies beside them."""

import ctypes
import functools
import json

import numpy as np

from menger.replay import specs
from menger.replay.replay_sample import SampleInfo

_KINDS = "biufcS"


def row_of(value):
    """`value` as a dense array of a type that rows may have. Raises TypeError for another."""
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind in "OU":
        array = _encoded(array)
    elif kind not in _KINDS and array.dtype.name not in ("bfloat16",):
        raise TypeError(f"values of type {array.dtype} cannot be stored; numbers, booleans, bytes and texts can")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "S" and array.shape == ():
        # A size for each length would be a column for each. Zeros at the end are nothing to NumPy.
        array = array.astype(f"S{max(8, 1 << (array.dtype.itemsize - 1).bit_length())}")
    return array if array.flags.c_contiguous else array.copy(order="C")


def _encoded(array):
    """Texts as bytes, in UTF-8."""
    if array.dtype.kind == "O" and not all(isinstance(each, (str, bytes)) for each in array.flat):
        raise TypeError(
            "values of type object cannot be stored: arrays of numbers, booleans, bytes or texts can"
            f" (a {type(array.flat[0] if array.size else array.item).__name__} came)"
        )
    texts = [each.encode() if isinstance(each, str) else each for each in array.flat]
    return np.array(texts, dtype=np.bytes_).reshape(array.shape)


def type_of_column(dtype, shape):
    """As a description names it: single texts have any length, those of arrays one."""
    if dtype.kind == "S":
        return "S" if shape == () else dtype.str
    return dtype.name


def describe(columns):
    """Bytes that say of each column (type, shape, is_squeezed)."""
    told = [(type_of_column(dtype, shape), list(shape), bool(squeezed)) for dtype, shape, squeezed in columns]
    return json.dumps(told, separators=(",", ":")).encode()


@functools.lru_cache(maxsize=4096)
def _described(description):
    columns = []
    for name, shape, squeezed in json.loads(description):
        dtype = np.dtype(name) if name[:1] in "S|" else specs.dtype_of(name)
        columns.append((dtype, tuple(shape), squeezed))
    return columns


def info_of(item):
    return SampleInfo(item.key, item.probability, item.table_items, item.priority, item.times_sampled)


def arrays_of(sampler, item):
    """The item's columns as arrays of their own, one after the other; a column of one step that was squeezed has no time."""
    described = _described(ctypes.string_at(item.description, item.description_bytes))
    if len(described) != item.columns:
        raise RuntimeError(f"an item has {item.columns} columns, and its description {len(described)}")
    arrays = []
    for index, (dtype, shape, squeezed) in enumerate(described, item.columns_begin):
        column = sampler.column(index)
        array = _array_of(sampler, index, column, dtype, shape)
        arrays.append(array[0, ...] if squeezed else array)
    return arrays


def _array_of(sampler, index, column, dtype, shape):
    rows, row_bytes = column.rows, column.row_bytes
    if dtype.itemsize == 0:
        dtype = np.dtype(f"S{max(row_bytes, 1)}")
    array = np.empty((rows, *shape), dtype)
    if array.size == 0:
        return array
    if array.nbytes != rows * row_bytes:
        raise RuntimeError(f"a column of {rows} rows of {row_bytes} bytes is described as {dtype} {shape}")
    sampler.copy(index, array)
    return array
