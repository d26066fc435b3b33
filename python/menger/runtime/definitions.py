"""Functions and classes on their way to the workers, and what the library needs to call them."""

import ctypes
import threading

from menger.runtime import current, environments, exceptions, library, options, placement, values

_exporting = threading.RLock()
_loading = threading.local()


class Definition:
    """A function or class, which travels to the workers once, by a reference that follows from what it is."""

    def __init__(self, target):
        self.target, self.name = target, target.__name__
        self._of = self._reference = None  # The name of the runtime that has it.
        self._exporter = None  # The thread that exports it at the moment.

    def reference(self, into):
        if self._of != into.name:
            with _exporting:
                if self.target is None:
                    raise exceptions.NotOfThisRuntimeError(f"'{self.name}' is of a runtime that was shut down")
                self._exporter = threading.get_ident()
                try:
                    self._reference = into.define(self.target)
                    self._of = into.name
                finally:
                    self._exporter = None
        return self._reference

    def load(self):
        """The function or class itself."""
        if self.target is None:
            self.target = load_definition(self._reference, current.session())
        return self.target

    # Whoever is exported already travels as its reference; one that contains itself, as what is being loaded; others, whole.
    def __getstate__(self):
        if self._exporter == threading.get_ident():
            return {"name": self.name, "target": self.target, "is_loading": True}
        if self._of is not None and self._of == _opened_name():
            return {"name": self.name, "target": None, "reference": self._reference}
        return {"name": self.name, "target": self.target}

    def __setstate__(self, state):
        self.name, self.target = state["name"], state["target"]
        self._reference = state.get("reference")
        if state.get("is_loading"):
            self._reference = getattr(_loading, "reference", None)
        self._of = _opened_name() if self._reference is not None else None
        self._exporter = None


def _opened_name():
    opened = current.opened()
    return opened and opened.name


def load_definition(reference, owner):
    """The function or class of a Definition's reference."""
    before = getattr(_loading, "reference", None)
    _loading.reference = reference
    try:
        return owner.get([reference])[0]
    finally:
        _loading.reference = before


def make_callable(owner, definition, told, more, **others):
    """What runs a function, or makes an actor of a class, that is told these options; `more` goes to the worker, if there is any."""
    where = placement.of(told, owner.captured, owner.name)
    if where is not None:
        where.check_fits(definition, told)
        others |= where.call_options()
        more = {**more, "bundles": where.placement_group.bundle_specs}
        if where.placement_group_capture_child_tasks:
            more["captures"] = True
    if environment := environments.inherited(owner.environment, told["runtime_env"] or {}):
        more = {**more, "environment": environment}
    if told["memory"]:
        more = {**more, "memory": told["memory"]}
    if told["num_gpus"]:
        more = {**more, "gpus": told["num_gpus"]}
    if told.get("max_calls"):
        more = {**more, "calls": told["max_calls"]}
    if told["num_cpus"] != 1:
        more = {**more, "threads": max(1, int(told["num_cpus"]))}
    reference = definition.reference(owner)
    more = values.dumps(more).joined() if more else b""
    prefix, packed = pack_bytes(reference.binary() + more)
    made = owner.make_callable(
        library.CallOptions(
            prefix=packed,
            definition=reference.handle,
            cpus=told["num_cpus"],
            gpus=told["num_gpus"],
            resources=options.amounts(told["resources"], told["memory"]),
            **others,
        )
    )
    del prefix
    return made


def pack_bytes(data):
    """(what must stay, its library.Bytes)."""
    held = ctypes.c_char_p(data)
    return held, library.Bytes(ctypes.cast(held, ctypes.c_void_p), len(data))
