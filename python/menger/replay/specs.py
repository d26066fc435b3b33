"""What arrays look like: shapes and types of tables' signatures, as text too."""

import collections
import json

import numpy as np

from menger.replay import nest


class TensorSpec:
    """Shape, type and name of an array. A dimension may be None: it has any size."""

    def __init__(self, shape, dtype=np.float32, name=None):
        self.shape = tuple(None if size is None else int(size) for size in shape)
        self.dtype = dtype_of(dtype)
        self.name = name

    def is_compatible_with(self, shape, dtype):
        return self.dtype == dtype and shapes_match(self.shape, shape)

    def __eq__(self, other):
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self):
        return hash((self.shape, self.dtype, self.name))

    def __repr__(self):
        name = "" if self.name is None else f", name={self.name!r}"
        return f"TensorSpec(shape={self.shape}, dtype={type_name(self.dtype)}{name})"


def shapes_match(pattern, shape):
    return len(pattern) == len(shape) and all(want in (None, have) for want, have in zip(pattern, shape))


def dtype_of(dtype):
    """NumPy's type of what names one: NumPy's own, TensorFlow's, or a name such as "bfloat16"."""
    dtype = getattr(dtype, "as_numpy_dtype", dtype)
    if dtype is str or dtype is bytes or dtype is object:
        return np.dtype("S")
    try:
        found = np.dtype(dtype)
    except TypeError:
        import ml_dtypes  # What NumPy does not know by itself.

        found = np.dtype(getattr(ml_dtypes, str(dtype)))
    return np.dtype("S") if found.kind in "SUO" else found


def type_name(dtype):
    """Of a type of rows: texts are of any length."""
    return "S" if dtype.kind == "S" else dtype.name


def as_spec(value):
    """The TensorSpec of what has a shape and a type. Raises ValueError for what has none."""
    if isinstance(value, TensorSpec):
        return value
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise ValueError(f"Unsupported signature spec: {value}")
    shape = value.shape.as_list() if hasattr(value.shape, "as_list") else value.shape
    return TensorSpec(shape, value.dtype, getattr(value, "name", None))


# ---- Signatures as text


_classes = {}


def named_tuple(name, fields):
    """The same class for the same name and fields."""
    key = (name, tuple(fields))
    if key not in _classes:
        _classes[key] = collections.namedtuple(name, fields)
    return _classes[key]


def _to_json(value):
    parts = nest.children(value)
    if parts is None:
        spec = as_spec(value)
        return {"shape": spec.shape, "dtype": type_name(spec.dtype), "name": spec.name}
    keys, inside = [key for key, _ in parts], [_to_json(part) for _, part in parts]
    if nest.is_named_tuple(value):
        return {"tuple": inside, "of": type(value).__name__, "fields": keys}
    if isinstance(value, tuple):
        return {"tuple": inside}
    if isinstance(value, list):
        return {"list": inside}
    return {"dict": inside, "keys": keys}


def _from_json(json_value):
    if "dtype" in json_value:
        return TensorSpec(json_value["shape"], json_value["dtype"], json_value["name"])
    if "dict" in json_value:
        return dict(zip(json_value["keys"], map(_from_json, json_value["dict"])))
    if "list" in json_value:
        return [_from_json(each) for each in json_value["list"]]
    inside = [_from_json(each) for each in json_value["tuple"]]
    if "of" in json_value:
        return named_tuple(json_value["of"], json_value["fields"])(*inside)
    return tuple(inside)


def encode(signature):
    """JSON of a structure of specs; "" for None."""
    return "" if signature is None else json.dumps(_to_json(signature))


def decode(text):
    return _from_json(json.loads(text)) if text else None
