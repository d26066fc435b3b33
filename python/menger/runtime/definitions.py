"""Functions and classes on their way to the workers, and what the library needs to call them."""

import ctypes
import threading

from menger.runtime import accelerators, current, environments, exceptions, feasibility, library, members, options, placement, values

_BYTES_MAX = 95 * 2**20  # Of what a function or class is pickled to, as in Ray: each worker holds it.
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
                if self._of != into.name:  # Of threads that call it first at once one exports it.
                    self._export(into)
        return self._reference

    def _export(self, into):
        if self.target is None:
            raise exceptions.NotOfThisRuntimeError(f"'{self.name}' is of a runtime that was shut down")
        self._exporter = threading.get_ident()
        try:
            self._reference = into.define(self.target, self._check_size)
            self._of = into.name
        finally:
            self._exporter = None

    def _check_size(self, size):
        if size <= _BYTES_MAX:
            return
        what = f"actor {self.name}" if isinstance(self.target, type) else f"remote function {self.target.__module__}.{self.target.__qualname__}"
        raise ValueError(
            f"The {what} is too large: it has {size} bytes, and {_BYTES_MAX} are the most. Does it use an array, or another large"
            " value, of what is around it? Let put() store that, and use the reference."
        )

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
    """(what runs a function, or makes an actor of a class, that is told these options; the reference for which it has to wait, or None).

    `more` goes to the worker, if there is any.
    """
    where, waits_for = placement.of(told, owner.captured), None
    there, preferred, spread = placement.among_nodes(told, owner)
    told = {**told, "resources": {**_resources(told, owner), **there}}
    if owner.place.address:  # Nodes of a cluster do not count it.
        told["memory"] = None
    for name, amount in accelerators.counted(told["num_gpus"], told["resources"]).items():
        accelerators.check_whole("num_gpus" if name == accelerators.GPU else f"resources['{name}']", amount)
    if where is not None:
        where.check_fits(definition, told)
        waits_for = where.placement_group.reference if where.placement_group.is_never else None
    elif lack := feasibility.lacking(feasibility.needed_by(told), owner.place.totals):
        feasibility.warn(f"'{definition.name}'", lack)
        waits_for = feasibility.never(owner)
    if waits_for is not None:  # It never runs, so it needs nothing.
        told, where = {**told, "num_cpus": 0, "num_gpus": 0, "resources": None, "memory": None}, None
        preferred = {}
    if where is not None:
        others |= where.call_options()
        more = {**more, "bundles": where.placement_group.bundle_specs}
        if where.placement_group_capture_child_tasks:
            more["captures"] = True
    if environment := environments.inherited(owner.environment, told["runtime_env"] or {}):
        more = {**more, "environment": environment}
    if told["memory"]:
        more = {**more, "memory": told["memory"]}
    if devices := accelerators.counted(told["num_gpus"], told["resources"]):
        more = {**more, "devices": devices}
    # What a process knows of a GPU it has for good, so by itself a task that has some is the last of its process, as in Ray.
    calls = told.get("max_calls", 0)
    if calls is None:
        calls = 1 if told["num_gpus"] else 0
    if calls:
        more = {**more, "calls": calls}
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
            preferred=options.amounts(preferred),
            spread=spread,
            **others,
        )
    )
    del prefix
    return made, waits_for


def _resources(told, owner):
    """Those that a call asks for, by the names that nodes have for them."""
    wanted = told["resources"] or {}
    return members.that_is_meant(wanted, owner) if owner.place.address else feasibility.without_nodes(wanted)


def pack_bytes(data):
    """(what must stay, its library.Bytes)."""
    held = ctypes.c_char_p(data)
    return held, library.Bytes(ctypes.cast(held, ctypes.c_void_p), len(data))
