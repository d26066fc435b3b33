"""Actors: classes whose objects live on workers of their own. As ray.actor."""

import array
import collections
import functools
import inspect
import pickle
import time
import types

from menger.runtime import current, definitions, exceptions, feasibility, generators, library, options, signatures, values
from menger.runtime.identities import Identity
from menger.runtime.names import full_name
from menger.runtime.pending import Pending
from menger.runtime.session import ObjectRef

_ATTEMPTS = 10  # To make an actor of a name that others take and leave.
_SETTLED_SECONDS = 30.0
_LOOK_SECONDS, _LOOK_SECONDS_MOST = 0.002, 0.1

# What every actor can do beside its own methods: say that it lives, end after the calls before, call a function with itself.
READY, TERMINATE, CALL = "__ray_ready__", "__ray_terminate__", "__ray_call__"
DECORATOR = "__ray_invocation_decorator__"  # Of a function or method: what decorates a call of it, as in Ray.
_DECLARED = "menger_method_options"  # Where `method` notes what it was told.


class ActorClassInheritanceException(TypeError):
    """A class was to inherit from a remote one."""


class ActorClass:
    """A class whose `remote(...)` makes an actor on a worker of its own."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, definition, told, instances=None, signature=None):
        self._definition = definition
        self._options = options.check(told, options.ACTOR_OPTIONS)
        self._instances = instances or describe(definition.target)
        self._signature = signature or signatures.signature_of(definition.target)
        self.__name__ = definition.name
        self.__doc__ = getattr(definition.target, "__doc__", None)

    def __call__(self, *_arguments, **_keywords):
        raise TypeError(f"'{self.__name__}' is a remote class and cannot be instantiated directly: call {self.__name__}.remote()")

    def __getattr__(self, name):
        """What the class itself has: constants, static methods."""
        if name.startswith("__") or "_definition" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._definition.load(), name)

    def __dir__(self):
        return ["options", "remote", *(name for name in self._instances.methods if not name.startswith("__ray"))]

    def __mro_entries__(self, bases):
        raise ActorClassInheritanceException(
            f"Inheriting from actor classes is not currently supported: '{self.__name__}' is one; make the class that inherits remote"
        )

    def options(self, **told):
        return ActorClass(self._definition, {**self._options, **told}, self._instances, self._signature)

    def _remote(self, args=(), kwargs=None, **told):
        return self.options(**told).remote(*args, **(kwargs or {}))

    def remote(self, *arguments, **keywords):
        self._signature.check(self.__name__, arguments, keywords)
        owner, told = current.session(), options.filled(self._options, options.ACTOR_OPTIONS)
        if told["lifetime"] not in (None, "detached", "non_detached"):
            raise ValueError(f"lifetime is {told['lifetime']!r}; it must be None, 'detached' or 'non_detached'")
        if self._options.get("name") == "":
            raise ValueError("Actor name cannot be an empty string: leave it out, or give the actor one")
        if told["allow_out_of_order_execution"] is False and (told["max_concurrency"] > 1 or told["concurrency_groups"]):
            raise ValueError(
                "allow_out_of_order_execution is False; calls keep their order only in an actor that does one after the other:"
                " without coroutines, max_concurrency and concurrency_groups"
            )
        if told["get_if_exists"] and not told["name"]:
            raise ValueError("get_if_exists needs a name")
        if not told["name"]:
            return self._handle(owner, *self._create(owner, told, "", arguments, keywords), told)
        name = full_name(told["name"], told["namespace"], owner)
        for _ in range(_ATTEMPTS):
            found = owner.find(name)
            if found is None:
                made = self._create(owner, told, name, arguments, keywords)
                # The node has heard of it by now. Somebody else may have been first, and gone since.
                found = _found_when_settled(owner, name, made[1], told) or (None if _is_refused(owner, made[1]) else made)
                if found and found[0] == made[0]:
                    return self._handle(owner, *made, told)
            if found and told["get_if_exists"]:
                return _found_handle(owner, found, None if found.of_another else self._instances)
            if found:
                raise ValueError(
                    f"The name '{told['name']}' is already taken by an actor that lives. Please use a different name, or get_if_exists=True"
                )
        raise ValueError(f"actors named '{told['name']}' come and go: none was found or could be made")

    def _handle(self, owner, actor, kept, told):
        if told["lifetime"] == "detached":
            owner.await_at_end(kept)
        return ActorHandle(owner, actor, kept, self._instances, limit=told["max_pending_calls"])

    def _create(self, owner, told, name, arguments, keywords):
        _check_groups(self._definition.load(), told["concurrency_groups"] or {})
        more = {"name": told["name"], "groups": told["concurrency_groups"]}
        concurrency = told["max_concurrency"]
        if told["concurrency_groups"]:
            more["concurrency"] = concurrency
            concurrency = options.CONCURRENCY_MAX  # Those that are too many of a group wait for it at the worker.
        made, waits_for = definitions.make_callable(
            owner,
            self._definition,
            told,
            {key: value for key, value in more.items() if value},
            kind=library.CONSTRUCT,
            results=1,
            name=name.encode(),
            type=self._definition.name.encode(),
            retries=options.retries(told["max_task_retries"]),
            restarts=options.retries(told["max_restarts"]),
            detached=int(told["lifetime"] == "detached"),
            concurrency=min(concurrency, options.CONCURRENCY_MAX),
        )
        try:
            return owner.create(made, arguments, feasibility.with_wait(keywords, waits_for), self._definition.name)
        finally:
            owner.drop_callable(made)

    def __getstate__(self):
        return self._definition, self._options, self._instances, self._signature

    def __setstate__(self, state):
        self.__init__(*state)


@functools.lru_cache(maxsize=1000)
def _declared_groups(target):
    """(method, its concurrency group) of those that have one."""
    found = [(name, declared_options(each).get("concurrency_group")) for name, each in inspect.getmembers(target, callable)]
    return [(name, group) for name, group in found if group]


def _check_groups(target, groups):
    for name, group in _declared_groups(target):
        if group not in groups:
            known = ", ".join(groups) or "none"
            raise ValueError(f"the concurrency_group of '{target.__name__}.{name}' is '{group}'; concurrency_groups has: {known}")


def _found_when_settled(owner, name, kept, told):
    """Who has the name, once that is said of an actor that is made; in a cluster another process makes detached ones."""
    end, pause = time.monotonic() + _SETTLED_SECONDS, _LOOK_SECONDS
    while True:
        made = any(owner.wait(array.array("Q", [kept.handle]), 1, 0))
        found = owner.find(name)
        if found or made or told["lifetime"] != "detached" or time.monotonic() > end:
            return found
        time.sleep(pause)
        pause = min(1.5 * pause, _LOOK_SECONDS_MOST)


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
    """An actor. It lives while somebody has a handle; handles may be arguments and parts of values.

    A weak handle, of somebody who has found the actor by its name, does not keep it.
    """

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, owner, actor, kept, description, is_weak=False, limit=-1):
        """`kept`: the reference on what stands for the actor; of a weak handle perhaps only its id. `limit`: max_pending_calls."""
        self._pending = Pending(limit) if limit > 0 else None
        self._session, self._actor, self._object = owner, actor, kept
        self._is_weak, self._description = is_weak, description
        self._callables = {}
        self._weaken()

    def _weaken(self):
        # What is not known of an actor it has to be asked for, and so long it must be there.
        if self._is_weak and self._description is not None and type(self._object) is ObjectRef:
            self._object = self._object.binary()

    def __getattr__(self, name):
        if name.startswith("__") and name not in (READY, TERMINATE, CALL, "__call__"):
            raise AttributeError(name)
        described = self._described()
        if name not in described.methods:
            raise AttributeError(f"actors of class '{described.name}' have no method '{name}'")
        found = ActorMethod(self, name, *described.methods[name], key=name)
        return DecoratedMethod(found, described.decorators[name]) if name in described.decorators else found

    def _described(self):
        if self._description is None:  # Found by its name: the actor says what it is.
            self._description = self._session.get([self._object])[0]
            self._weaken()
        return self._description

    def _kept(self):
        """The reference on what stands for it, if this handle has one."""
        return self._object if type(self._object) is ObjectRef else None

    @property
    def _actor_id(self):
        return Identity(self._actor)

    _ray_actor_id = _actor_id

    def __dir__(self):
        return [name for name in self._described().methods if not name.startswith("__ray")]

    def _make_callable(self, key, method, told):
        prefix, packed = definitions.pack_bytes(_prefix(method, told))
        stands_for = self._object if type(self._object) is ObjectRef else self._session.adopt(self._object)
        made = self._session.make_callable(
            library.CallOptions(
                kind=library.METHOD,
                results=generators.count(told.num_returns),
                prefix=packed,
                name=(told.name or f"{self._described().name}.{method}").encode(),
                resources=b"",
                retries=told.retries,
                retry_errors=int(told.retry_errors),
                stream_ahead=told.ahead if told.num_returns == options.STREAMING else 0,
                actor=library.Id.from_buffer_copy(self._actor),
                actor_object=stands_for.handle,
            )
        )
        del prefix, stands_for
        kept = self._callables.setdefault(key, made)
        if kept is not made:  # Another thread was first.
            self._session.drop_callable(made)
        return kept

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
        limit = self._pending.limit if self._pending is not None else -1
        return (_handle, (self._actor, self._object, self._description, self._is_weak, limit))


def _handle(actor, kept, description, is_weak, limit):
    return ActorHandle(current.session(), actor, kept, description, is_weak, limit)


# What a call of a method is told; `retried`: the pickled classes of exceptions for which it is run again, where the method itself
# does not say which.
MethodOptions = collections.namedtuple("MethodOptions", "num_returns name retries retry_errors retried ahead group")


def _prefix(method, told):
    """What says to the worker which method is called; split_prefix reads it."""
    mark = b"d" if told.num_returns == options.DYNAMIC else b"w" if told.ahead != options.AHEAD_MAX else b""
    return b"\0".join((method.encode(), told.group.encode(), mark, told.retried))


def split_prefix(prefix):
    """(the method's name, its group, what its options say to the worker, the classes for which it is run again or None)."""
    name, group, mark, retried = prefix.split(b"\0", 3)
    return name.decode(), group.decode(), {"dynamic": mark == b"d", "waits_for_reader": mark == b"w"}, values.loads(retried) if retried else None


class ActorMethod:
    __slots__ = ("_actor", "_key", "_method", "_options", "_signature")

    def __init__(self, actor, method, told, signature, key=None):
        """`key`: by which the actor knows what to call; None: by all that is told."""
        self._actor, self._method, self._options, self._signature = actor, method, told, signature
        self._key = key or (method, told)

    def __call__(self, *_arguments, **_keywords):
        raise TypeError(f"'{self._method}' is a method of an actor and cannot be called directly: call {self._method}.remote()")

    def options(self, **told):
        return ActorMethod(self._actor, self._method, _method_options(told, self._options), self._signature)

    def _remote(self, args=(), kwargs=None, **told):
        return self.options(**told).remote(*args, **(kwargs or {}))

    def remote(self, *arguments, **keywords):
        self._signature.check(self._method, arguments, keywords)
        actor, told = self._actor, self._options
        if actor._pending is not None:
            actor._pending.check(actor._session)
        made = actor._callables.get(self._key) or actor._make_callable(self._key, self._method, told)
        if told.num_returns == 1:
            made = actor._session.call(made, 1, arguments, keywords)
            made.of_actor = actor._actor
            several = (made,)
        else:
            made = generators.call(actor._session, made, told.num_returns, arguments, keywords)
            several = made if type(made) is list else (made,) if type(made) is ObjectRef else ()
            for each in several:
                each.of_actor = actor._actor
        if actor._pending is not None and several:
            actor._pending.add(several[0])
        return made


class DecoratedMethod:
    """A method with a DECORATOR, where the actor was made: that says what its `remote` does, and what it gives."""

    def __init__(self, method, decorate):
        self._method, self._decorate = method, decorate

    def options(self, **told):
        return DecoratedMethod(self._method.options(**told), self._decorate)

    def remote(self, *arguments, **keywords):
        return self._decorate(lambda args, kwargs: self._method.remote(*args, **kwargs))(arguments, keywords)


def _method_options(told, usual):
    """What is told, and otherwise `usual`."""
    options.check(told, options.METHOD_OPTIONS)
    if isinstance(usual.num_returns, int):
        options.check_results(told.get("num_returns"), usual.num_returns, "the method")
    changed, given = {}, {name: value for name, value in told.items() if value is not None}
    for name in ("num_returns", "name"):
        if name in given:
            changed[name] = given[name]
    if "concurrency_group" in given:
        changed["group"] = given["concurrency_group"]
    if "max_task_retries" in given:
        changed["retries"] = options.retries(given["max_task_retries"])
    if "retry_exceptions" in given:
        retried = given["retry_exceptions"]
        changed["retry_errors"] = bool(retried)
        changed["retried"] = b"" if isinstance(retried, bool) else values.dumps(tuple(retried)).joined()
    if "_generator_backpressure_num_objects" in given:
        changed["ahead"] = options.ahead(given)
    return usual._replace(**changed)


def method(*arguments, **told):
    """Says how a method of an actor is called: with how many results, retries, in which group. A decorator."""
    if arguments or not told:
        raise TypeError("method takes options by their names, as method(num_returns=2)")
    options.check(told, options.METHOD_OPTIONS)

    def mark(function):
        setattr(function, _DECLARED, told)
        return function

    return mark


def declared_options(function):
    """What `method` was told of it."""
    return getattr(function, _DECLARED, {})


class Description:
    """What the actors of a class are: its name, and for each method how it is called and its signature."""

    def __init__(self, name, methods, decorators=None):
        """`decorators`: of those methods that have some; they stay in the process that has the class."""
        self.name, self.methods, self.decorators = name, methods, decorators or {}
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
        name: (_described_options(each), _signature_of_method(target, name, each))
        for name, each in inspect.getmembers(target, callable)
        if not name.startswith("__") or (name == "__call__" and inspect.isfunction(each))
    }
    decorators = {name: getattr(target, name).__dict__[DECORATOR] for name in methods if hasattr(getattr(target, name), DECORATOR)}
    plain = MethodOptions(1, "", 0, False, b"", options.AHEAD_MAX, "")
    return Description(target.__name__, {**methods, **dict.fromkeys((READY, TERMINATE, CALL), (plain, signatures.ANYTHING))}, decorators)


def _described_options(function):
    usual = MethodOptions(options.results_of(function), "", 0, False, b"", options.AHEAD_MAX, "")
    # Which exceptions, the worker knows: it has the method.
    return _method_options(declared_options(function), usual)._replace(retried=b"")


def _signature_of_method(target, name, found):
    if isinstance(inspect.getattr_static(target, name, None), staticmethod):
        return signatures.signature_of(found)
    return signatures.signature_of(found, bound=inspect.isfunction(found))


def has_coroutines(target):
    """Whether methods of a class are coroutines: all of its methods run on one loop then."""
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for _, each in inspect.getmembers(target, callable)
    )


def find_actor(name, namespace=None):
    """The living actor of that name."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of an actor is a text that is not empty; this is {name!r}")
    owner = current.session()
    found = owner.find(full_name(name, namespace, owner))
    if found is None:
        raise ValueError(f"Failed to look up actor with name '{name}': none lives in namespace '{namespace or owner.namespace}'")
    handle = _found_handle(owner, found, None)
    if any(owner.wait(array.array("Q", [found.kept.handle]), 1, 0)):  # It is made: nothing keeps who asks what it is.
        handle._described()
    return handle


def _found_handle(owner, found, description):
    """Another program's actor is known here as long as somebody keeps it."""
    return ActorHandle(owner, found.actor, found.kept, description, is_weak=not found.of_another)


class ActorExit(BaseException):
    """Ends the method that calls exit_actor, up to the worker, which ends its process then."""


def exit_actor():
    """Ends the actor whose method calls this, for good: its process exits, and calls that it has not done fail."""
    opened = current.opened()
    if opened is None or opened.actor is None:
        raise TypeError("exit_actor API is called on a non-actor worker; a method of an actor may call it")
    if current.running.get() is None:
        raise RuntimeError("exit_actor is called on a thread that does no method of the actor: where it ends nothing but that thread")
    raise ActorExit
