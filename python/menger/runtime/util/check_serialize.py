"""What of a value cannot be sent, as ray.util.inspect_serializability."""

import inspect
import sys


class FailureTuple:
    """What cannot be pickled, by its name, and what it belongs to."""

    def __init__(self, obj, name, parent):
        self.obj, self.name, self.parent = obj, name, parent

    def __repr__(self):
        return f"FailureTuple(obj={self.obj!r}, name={self.name!r}, parent={self.parent!r})"


def inspect_serializability(base_obj, name=None, depth=3, print_file=None):
    """(whether it can be sent, the FailureTuples that say why not); prints what it finds."""
    file, found = print_file or sys.stdout, {}
    name = name or getattr(base_obj, "__name__", None) or str(base_obj)
    print(f"Looking for what of {name!r} cannot be sent", file=file)
    _inspect(base_obj, name, None, depth, found, file)
    for failure in found.values():
        print(f"  {failure.name!r} of {failure.parent!r}: {failure.obj!r}", file=file)
    print(f"{len(found)} found" if found else "It can be sent", file=file)
    return not found, set(found.values())


def _inspect(value, name, parent, depth, found, file):
    """Whether it cannot be pickled. What is to blame is the innermost of what cannot be."""
    import cloudpickle

    try:
        cloudpickle.dumps(value)
        return False
    except Exception as error:
        print(f"  {name!r} cannot be pickled: {error}", file=file)
    inner = [_inspect(each, of, value, depth - 1, found, file) for of, each in _parts(value).items()] if depth > 1 else []
    if not any(inner):
        found[id(value)] = FailureTuple(value, name, parent)
    return True


def _parts(value):
    if inspect.isfunction(value):
        names = inspect.getclosurevars(value)
        return {**names.globals, **names.nonlocals}
    found = dict(getattr(value, "__dict__", {}))
    if inspect.isclass(value):  # What Python gives to each class is not its own.
        found = {name: each for name, each in found.items() if not inspect.isgetsetdescriptor(each)}
    return found
