"""What programs do with references and actors: get, put, wait, cancel, kill."""

import array

from menger.runtime import current, generators, options
from menger.runtime.actor import ActorHandle
from menger.runtime.generators import ObjectRefGenerator
from menger.runtime.session import ObjectRef


_WAITED = {ObjectRef, ObjectRefGenerator}


def get(object_refs, *, timeout=None):
    """The value of a reference, or the values of a list of them. Raises what made one fail, GetTimeoutError."""
    if timeout is not None:
        timeout = options.seconds(timeout)
    if type(object_refs) is ObjectRef:
        return current.session().get((object_refs,), timeout)[0]
    if type(object_refs) is ObjectRefGenerator:  # It is one on this side already.
        return object_refs
    if not _are_references(object_refs):
        raise ValueError(f"get takes an ObjectRef or a list of them; this is {_kind(object_refs, {ObjectRef})}")
    return current.session().get(object_refs, timeout) if object_refs else []


def _are_references(values):
    return type(values) is list and set(map(type, values)) <= {ObjectRef}


def _kind(given, right):
    """What was given instead of a list of these types, for an error's text."""
    if type(given) is not list:
        return type(given).__name__
    place = next(i for i, each in enumerate(given) if type(each) not in right)
    return f"a list whose item {place} is {type(given[place]).__name__}"


def put(value, *, _owner=None):
    """Makes an object of a value. Whose it is has no effect: all belong to the node."""
    if type(value) is ObjectRef:
        raise TypeError("put takes a value; this is an ObjectRef already")
    return current.session().put(value)


def wait(object_refs, *, num_returns=1, timeout=None, fetch_local=True):
    """(the first `num_returns` that are ready, the others), in their order; after `timeout` seconds perhaps fewer.

    An ObjectRefGenerator is ready when its next item is.
    """
    if type(object_refs) is not list:
        raise TypeError(f"wait takes a list of ObjectRefs; this is {_kind(object_refs, ())}")
    if timeout is not None:
        if (timeout := options.seconds(timeout)) is not None and timeout < 0:
            raise ValueError(f"timeout is {timeout:g}; it must not be negative")
    if type(num_returns) is not int:
        raise TypeError(f"num_returns is {num_returns!r}; it must be a whole number")
    if not object_refs:
        return [], []
    try:
        handles = array.array("Q", map(ObjectRef.handle.__get__, object_refs))
    except TypeError:
        if not set(map(type, object_refs)) <= _WAITED:
            raise TypeError(f"wait takes a list of ObjectRefs; this is {_kind(object_refs, _WAITED)}") from None
        handles = None
    if not 0 < num_returns <= len(object_refs):
        raise ValueError(f"num_returns is {num_returns}; it must lie between 1 and {len(object_refs)}, the number of references")
    if handles is None:
        flags = generators.wait(current.session(), object_refs, num_returns, timeout)
    else:
        flags = current.session().wait(handles, num_returns, timeout)
    ready, pending, begin = [], [], 0
    while len(ready) < num_returns and (place := flags.find(1, begin)) >= 0:
        ready.append(object_refs[place])
        pending += object_refs[begin:place]
        begin = place + 1
    return ready, pending + object_refs[begin:]


def cancel(object_ref, *, force=False, recursive=True):
    """Settles a task that is not done as cancelled. One that runs gets a KeyboardInterrupt; with `force` its worker is killed.

    With `recursive` so is what the task has called.
    """
    if type(object_ref) is ObjectRefGenerator:
        object_ref = object_ref.completed()
    if type(object_ref) is not ObjectRef:
        raise TypeError(f"cancel takes an ObjectRef; this is {type(object_ref).__name__}")
    if force and object_ref.of_actor:
        raise ValueError("force=True is not supported for methods of actors; an actor is ended by menger.runtime.kill")
    current.session().cancel(object_ref, force, recursive)


def kill(actor, *, no_restart=True):
    """Ends an actor's process; the calls that it has not done fail."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"kill takes an actor; this is {type(actor).__name__}")
    actor._session.kill(actor._actor, not no_restart, actor._kept())
