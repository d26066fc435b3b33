"""Functions and classes that run on workers: what `remote` makes of them."""

import array
import ctypes
import functools
import inspect
import pickle
import threading

from menger.runtime import current, exceptions, library, signatures, values
from menger.runtime.placement import Placement

_UNLIMITED = 65535
_ATTEMPTS = 10  # To make an actor of a name that others take and leave.
_CONCURRENCY_MAX = 1000  # And what actors with coroutines have, as in Ray.

# What a call of a function, or the making of an actor, can be told, and what is so if it is not.
FUNCTION_OPTIONS = {
    "num_cpus": 1,
    "num_gpus": 0,
    "resources": None,
    "num_returns": 1,
    "max_retries": 3,
    "retry_exceptions": False,
    "name": "",
    "scheduling_strategy": "DEFAULT",
}
ACTOR_OPTIONS = {
    "num_cpus": 0,
    "num_gpus": 0,
    "resources": None,
    "name": "",
    "namespace": None,
    "lifetime": None,
    "get_if_exists": False,
    "max_restarts": 0,
    "max_task_retries": 0,
    "max_concurrency": 1,
    "scheduling_strategy": "DEFAULT",
}
METHOD_OPTIONS = {"num_returns": 1, "name": ""}

_exporting = threading.RLock()
_loading = threading.local()


def check_options(given, known):
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"'{name}' is no option; there are: {', '.join(known)}")
        if name in ("num_cpus", "num_gpus") and value is None:
            raise ValueError(f"{name} is None; leave it out instead")
    returns = given.get("num_returns", 1)
    if not isinstance(returns, int) or not 0 <= returns <= 1000:
        raise ValueError(f"num_returns is {returns!r}; it must be a number from 0 to 1000")
    concurrency = given.get("max_concurrency", 1)
    if not isinstance(concurrency, int) or not 1 <= concurrency <= _CONCURRENCY_MAX:
        raise ValueError(f"max_concurrency is {concurrency!r}; it must be a number from 1 to {_CONCURRENCY_MAX}")
    for name in ("max_retries", "max_restarts", "max_task_retries"):
        _check_count(name, given.get(name, 0))
    if not isinstance(given.get("name") or "", str):
        raise TypeError(f"name is {given['name']!r}; it must be a text")
    if not _are_exceptions(given.get("retry_exceptions", False)):
        raise ValueError(
            f"retry_exceptions is {given['retry_exceptions']!r}; it must be True, False or a list of classes of exceptions"
        )
    strategy = given.get("scheduling_strategy", "DEFAULT")
    if strategy not in (None, "DEFAULT", "SPREAD") and not isinstance(strategy, Placement):
        raise ValueError(
            f"scheduling_strategy is {strategy!r}; it must be 'DEFAULT', 'SPREAD' or a PlacementGroupSchedulingStrategy"
        )
    return given


def _check_count(name, count):
    if not isinstance(count, int):
        raise TypeError(f"{name} is {count!r}; it must be a whole number")
    if count < -1:
        raise ValueError(f"{name} is {count}; it must be -1, for any number, or not negative")


def _are_exceptions(given):
    if isinstance(given, bool):
        return True
    return isinstance(given, (list, tuple)) and all(inspect.isclass(each) and issubclass(each, BaseException) for each in given)


def amounts(resources):
    return " ".join(f"{name}={float(amount)!r}" for name, amount in (resources or {}).items()).encode()


def _retries(count):
    return _UNLIMITED if count == -1 else count


class Definition:
    """A function or class, which travels to the workers once, by a reference that follows from what it is."""

    def __init__(self, target):
        self.target, self.name = target, target.__name__
        self._session = self._reference = None
        self._exporter = None  # The thread that exports it at the moment.

    def reference(self, into):
        if self._session is not into:
            with _exporting:
                if self.target is None:
                    raise exceptions.RaySystemError(f"'{self.name}' is of a runtime that was shut down")
                self._exporter = threading.get_ident()
                try:
                    self._reference = into.define(self.target)
                    self._session = into
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
        if self._session is not None and self._session is current.opened():
            return {"name": self.name, "target": None, "reference": self._reference}
        return {"name": self.name, "target": self.target}

    def __setstate__(self, state):
        self.name, self.target = state["name"], state["target"]
        self._reference = state.get("reference")
        if state.get("is_loading"):
            self._reference = getattr(_loading, "reference", None)
        self._session = current.opened() if self._reference is not None else None
        self._exporter = None


def load_definition(reference, owner):
    """The function or class of a Definition's reference."""
    before = getattr(_loading, "reference", None)
    _loading.reference = reference
    try:
        return owner.get([reference])[0]
    finally:
        _loading.reference = before


def _make_callable(owner, definition, options, more=b"", **others):
    """What runs a function, or makes an actor of a class, that is told these options; `more` goes to the worker."""
    strategy = options["scheduling_strategy"]
    if isinstance(strategy, Placement):
        others |= strategy.call_options()
    reference = definition.reference(owner)
    prefix, packed = pack_bytes(reference.binary() + more)
    made = owner.make_callable(
        library.CallOptions(
            prefix=packed,
            definition=reference.handle,
            cpus=options["num_cpus"],
            gpus=options["num_gpus"],
            resources=amounts(options["resources"]),
            **others,
        )
    )
    del prefix
    return made


class RemoteFunction:
    """A function whose `remote(...)` calls it on a worker and returns at once."""

    def __init__(self, definition, options, signature=None):
        self._definition = definition
        self._options = check_options(options, FUNCTION_OPTIONS)
        self._signature = signature or signatures.signature_of(definition.target)
        self._forget_callable()
        self.__name__ = definition.name
        self.__doc__ = getattr(definition.target, "__doc__", None)

    def __call__(self, *_arguments, **_keywords):
        raise TypeError(f"'{self.__name__}' is a remote function: call {self.__name__}.remote()")

    def options(self, **options):
        """The same function, called with other options."""
        return RemoteFunction(self._definition, {**self._options, **options}, self._signature)

    def remote(self, *arguments, **keywords):
        self._signature.check(self.__name__, arguments, keywords)
        owner = current.session()
        if self._session is not owner:
            self._make_callable(owner)
        references = owner.call(self._callable, self._results or 1, arguments, keywords)
        return references if self._results else None

    def _forget_callable(self):
        self._session = self._callable = None
        self._results = self._options.get("num_returns", 1)

    def _make_callable(self, owner):
        self._drop_callable()
        self._session = None
        options = {**FUNCTION_OPTIONS, **self._options}
        retried = options["retry_exceptions"]
        self._callable = _make_callable(
            owner,
            self._definition,
            options,
            more=b"" if isinstance(retried, bool) else values.dumps(tuple(retried)).joined(),
            kind=library.FUNCTION,
            results=self._results or 1,
            name=(options["name"] or self._definition.name).encode(),
            retries=_retries(options["max_retries"]),
            retry_errors=int(bool(retried)),
        )
        self._session = owner

    def _drop_callable(self):
        if getattr(self, "_session", None) is not None:
            self._session.drop_callable(self._callable)

    __del__ = _drop_callable

    # A function may contain itself: it is made before what it contains is read.
    def __getstate__(self):
        return self._definition, self._options, self._signature

    def __setstate__(self, state):
        self.__init__(*state)


class ActorClass:
    """A class whose `remote(...)` makes an actor on a worker of its own."""

    def __init__(self, definition, options, instances=None, signature=None):
        self._definition = definition
        self._options = check_options(options, ACTOR_OPTIONS)
        self._instances = instances or describe(definition.target)
        self._signature = signature or signatures.signature_of(definition.target)
        self.__name__ = definition.name
        self.__doc__ = getattr(definition.target, "__doc__", None)

    def __call__(self, *_arguments, **_keywords):
        raise TypeError(f"'{self.__name__}' is a remote class: make an actor with {self.__name__}.remote()")

    def __getattr__(self, name):
        """What the class itself has: constants, static methods."""
        if name.startswith("__") or "_definition" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._definition.load(), name)

    def options(self, **options):
        return ActorClass(self._definition, {**self._options, **options}, self._instances, self._signature)

    def remote(self, *arguments, **keywords):
        self._signature.check(self.__name__, arguments, keywords)
        owner, options = current.session(), {**ACTOR_OPTIONS, **self._options}
        name = options["name"] or ""
        if options["get_if_exists"] and not name:
            raise ValueError("get_if_exists needs a name")
        if not name:
            return self._handle(owner, *self._create(owner, options, "", arguments, keywords), options)
        for _ in range(_ATTEMPTS):
            found = owner.find(name)
            if found is None:
                made = self._create(owner, options, name, arguments, keywords)
                # The node has heard of it by now. Somebody else may have been first, and gone since.
                found = owner.find(name) or (None if _is_refused(owner, made[1]) else made)
                if found and found[0] == made[0]:
                    return self._handle(owner, *made, options)
            if found and options["get_if_exists"]:
                return ActorHandle(owner, *found, self._instances)
            if found:
                raise ValueError(f"an actor named '{name}' lives already")
        raise ValueError(f"actors named '{name}' come and go: none was found or could be made")

    def _handle(self, owner, actor, kept, options):
        if options["lifetime"] == "detached":
            owner.kept.append(kept)
        return ActorHandle(owner, actor, kept, self._instances)

    def _create(self, owner, options, name, arguments, keywords):
        made = _make_callable(
            owner,
            self._definition,
            options,
            kind=library.CONSTRUCT,
            results=1,
            name=name.encode(),
            type=self._definition.name.encode(),
            retries=_retries(options["max_task_retries"]),
            restarts=_retries(options["max_restarts"]),
            concurrency=options["max_concurrency"],
        )
        try:
            return owner.create(made, arguments, keywords)
        finally:
            owner.drop_callable(made)

    def __getstate__(self):
        return self._definition, self._options, self._instances, self._signature

    def __setstate__(self, state):
        self.__init__(*state)


def _is_refused(owner, kept):
    """Whether an actor was not made because one of its name lived."""
    if not any(owner.wait(array.array("Q", [kept.handle]), 1, 0)):
        return False
    try:
        owner.raise_failure(kept)
    except exceptions.RayError as error:
        return "lives already" in str(error)
    return False


class ActorHandle:
    """An actor. It lives while somebody has a handle; handles may be arguments and parts of values."""

    def __init__(self, owner, actor, kept, description):
        self._session, self._actor, self._object = owner, actor, kept
        self._description = description
        self._callables = {}

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__ray_ready__", "__call__"):
            raise AttributeError(name)
        if self._description is None:  # Found by its name: the actor says what it is.
            self._description = self._session.get([self._object])[0]
        if name not in self._description.methods:
            raise AttributeError(f"actors of class '{self._description.name}' have no method '{name}'")
        return ActorMethod(self, name, *self._description.methods[name], "")

    def _callable(self, method, results, name):
        made = self._callables.get((method, results, name))
        if made is None:
            prefix, packed = pack_bytes(method.encode())
            made = self._callables[method, results, name] = self._session.make_callable(
                library.CallOptions(
                    kind=library.METHOD,
                    results=results or 1,
                    prefix=packed,
                    name=(name or f"{self._description.name}.{method}").encode(),
                    resources=b"",
                    actor=library.Id.from_buffer_copy(self._actor),
                    actor_object=self._object.handle,
                )
            )
            del prefix
        return made

    def __del__(self):
        for made in self.__dict__.get("_callables", {}).values():
            self._session.drop_callable(made)

    def __hash__(self):
        return hash(self._actor)

    def __eq__(self, other):
        return type(other) is ActorHandle and self._actor == other._actor

    def __repr__(self):
        return f"Actor({self._description.name if self._description else ''}, {self._actor.hex()})"

    def __reduce__(self):
        return (_handle, (self._actor, self._object, self._description))


def _handle(actor, kept, description):
    return ActorHandle(current.session(), actor, kept, description)


class ActorMethod:
    __slots__ = ("_actor", "_method", "_name", "_results", "_signature")

    def __init__(self, actor, method, results, signature, name):
        self._actor, self._method, self._results, self._name = actor, method, results, name
        self._signature = signature

    def __call__(self, *_arguments, **_keywords):
        raise TypeError(f"'{self._method}' is a method of an actor: call {self._method}.remote()")

    def options(self, **options):
        check_options(options, METHOD_OPTIONS)
        results, name = options.get("num_returns", self._results), options.get("name", self._name)
        return ActorMethod(self._actor, self._method, results, self._signature, name)

    def remote(self, *arguments, **keywords):
        self._signature.check(self._method, arguments, keywords)
        actor, results = self._actor, self._results
        made = actor._callable(self._method, results, self._name)
        references = actor._session.call(made, results or 1, arguments, keywords)
        return references if results else None


def method(num_returns=1):
    """Says how many results a method of an actor has."""
    check_options({"num_returns": num_returns}, METHOD_OPTIONS)

    def mark(function):
        function.menger_num_returns = num_returns
        return function

    return mark


class Description:
    """What the actors of a class are: its name, and for each method how many results it has and its signature."""

    def __init__(self, name, methods):
        self.name, self.methods = name, methods
        self._packed = None

    # It travels with each handle, and is the same for all of a class.
    def __reduce__(self):
        if self._packed is None:
            self._packed = pickle.dumps((self.name, self.methods))
        return (_restore_description, (self._packed,))


@functools.lru_cache(maxsize=1000)
def _restore_description(packed):
    return Description(*pickle.loads(packed))


def describe(target):
    methods = {
        name: (getattr(each, "menger_num_returns", 1), _signature_of_method(target, name, each))
        for name, each in inspect.getmembers(target, callable)
        if not name.startswith("__") or (name == "__call__" and inspect.isfunction(each))
    }
    return Description(target.__name__, {**methods, "__ray_ready__": (1, signatures.ANYTHING)})


def _signature_of_method(target, name, found):
    if isinstance(inspect.getattr_static(target, name, None), staticmethod):
        return signatures.signature_of(found)
    return signatures.signature_of(found, bound=inspect.isfunction(found))


def has_coroutines(target):
    """Whether methods of a class are coroutines: all of its methods run on one loop then."""
    return any(inspect.iscoroutinefunction(each) for _, each in inspect.getmembers(target, callable))


def find_actor(name, namespace=None):
    """The living actor of that name."""
    if not isinstance(name, str):
        raise ValueError(f"the name of an actor is a text; this is {name!r}")
    owner = current.session()
    found = owner.find(name)
    if found is None:
        raise ValueError(f"no actor named '{name}' lives")
    return ActorHandle(owner, *found, None)


def pack_bytes(data):
    """(what must stay, its library.Bytes)."""
    held = ctypes.create_string_buffer(data, len(data))
    return held, library.Bytes(ctypes.addressof(held), len(data))


def remote(*target, **options):
    """Makes a function or class remote: as a decorator, with or without options, or called."""
    if len(target) == 1 and not options:
        return _make(target[0], {})
    if target:
        raise TypeError("remote takes a function or class, or options by their names")
    return lambda each: _make(each, options)


def _make(target, options):
    if inspect.isclass(target):
        if has_coroutines(target):
            options = {"max_concurrency": _CONCURRENCY_MAX, **options}
        return ActorClass(Definition(target), options)
    if not callable(target):
        raise TypeError(f"only functions and classes can be remote; this is {target!r}")
    return RemoteFunction(Definition(target), options)
