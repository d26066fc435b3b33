"""How values of the program's own classes travel from this process, as ray.util.register_serializer."""

import copyreg


def register_serializer(cls, *, serializer, deserializer):
    """From now on an object of the class goes as `serializer(it)`, and `deserializer` makes one of that."""
    copyreg.pickle(cls, lambda value: (deserializer, (serializer(value),)))


def deregister_serializer(cls):
    copyreg.dispatch_table.pop(cls, None)
