"""As ray.runtime_env."""

import dataclasses
import json


class RuntimeEnv(dict):
    """A runtime_env by its names: RuntimeEnv(env_vars={...}, working_dir=folder, py_modules=folders)."""

    def __init__(self, **told):
        super().__init__({name: value for name, value in told.items() if value is not None})

    def set(self, name, value):
        """A value that JSON can say, or a dataclass of such."""
        try:
            plain = json.loads(json.dumps(dataclasses.asdict(value) if _is_data(value) else value))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} is {value!r}; it must be a dataclass, or what JSON can say: {error}") from error
        self[name] = plain

    def get(self, name, default=None, data_class=None):
        """The value of that name; with `data_class` as one of it, and so are those inside of it that are told to be dataclasses."""
        if name not in self:
            return default
        return self[name] if data_class is None else _build(data_class, self[name])

    def to_dict(self):
        return dict(self)

    def serialize(self):
        return json.dumps(self, sort_keys=True)

    @classmethod
    def deserialize(cls, text):
        return cls(**json.loads(text))


def _is_data(value):
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _build(kind, value):
    """A value of that kind, which may be a dataclass or a list or dict of some, from what JSON says of it."""
    import typing

    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        kinds = typing.get_type_hints(kind)
        return kind(**{name: _build(kinds.get(name), each) for name, each in value.items()})
    if origin is list and isinstance(value, list):
        return [_build(inner[0], each) for each in value]
    if origin is dict and isinstance(value, dict):
        return {name: _build(inner[1], each) for name, each in value.items()}
    if origin is typing.Union and type(None) in inner and value is not None:
        return _build(next(each for each in inner if each is not type(None)), value)
    return value
