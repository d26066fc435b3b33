"""Nested structures, flattened as dm-tree does: dicts by sorted keys, named tuples and attrs classes by their fields.

Everything else, None and arrays too, is a leaf.
"""

import collections
import collections.abc

import numpy as np


def is_named_tuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_attrs(value):
    return hasattr(type(value), "__attrs_attrs__")


_LEAVES = frozenset((int, float, bool, str, bytes, type(None), np.ndarray, np.float32, np.float64, np.int64, np.bool_))


def children(value):
    """(key, child) of each part of a structure, in order; None for a leaf."""
    if type(value) in _LEAVES:  # Most of them: what follows takes longer.
        return None
    if is_named_tuple(value):
        return [(field, getattr(value, field)) for field in value._fields]
    if _is_attrs(value):
        return [(field.name, getattr(value, field.name)) for field in type(value).__attrs_attrs__]
    if isinstance(value, collections.abc.Mapping):
        try:
            keys = sorted(value)
        except TypeError:
            raise TypeError(f"the keys of a dict must be sortable, but there are {list(value)}") from None
        return [(key, value[key]) for key in keys]
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    return None


def rebuild(like, parts):
    """A structure as `like` of these parts, which are in the order of children(like)."""
    if is_named_tuple(like):
        return type(like)(*parts)
    if _is_attrs(like):
        return type(like)(*parts)
    if isinstance(like, collections.abc.Mapping):
        found = dict(zip(sorted(like), parts))
        ordered = [(key, found[key]) for key in like]  # As they were written.
        if isinstance(like, collections.defaultdict):
            return type(like)(like.default_factory, ordered)
        return type(like)(ordered)
    return type(like)(parts)


def flatten_with_path(structure):
    found = []

    def walk(value, path):
        parts = children(value)
        if parts is None:
            found.append((path, value))
            return
        for key, part in parts:
            walk(part, (*path, key))

    walk(structure, ())
    return found


def flatten(structure):
    found = []

    def walk(value):
        parts = children(value)
        if parts is None:
            found.append(value)
            return
        for _, part in parts:
            walk(part)

    walk(structure)
    return found


def unflatten_as(structure, flat):
    """`structure` with these leaves. Raises ValueError if there are more or fewer."""
    flat = list(flat)
    leaves = iter(flat)
    count = 0

    def walk(value):
        nonlocal count
        parts = children(value)
        if parts is None:
            count += 1
            return next(leaves, None)
        return rebuild(value, [walk(part) for _, part in parts])

    made = walk(structure)
    if count != len(flat):
        raise ValueError(f"a structure of {count} leaves cannot be made of {len(flat)}")
    return made


def map_structure(function, structure, *others):
    flat = [flatten(each) for each in (structure, *others)]
    if any(len(leaves) != len(flat[0]) for leaves in flat):
        raise ValueError("the structures have different numbers of leaves")
    return unflatten_as(structure, [function(*leaves) for leaves in zip(*flat)])
