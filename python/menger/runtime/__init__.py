"""Tasks, actors and objects with Ray's names: `import menger.runtime as ray`.

    @ray.remote
    def square(x):
        return x * x

    ray.init()
    print(ray.get([square.remote(i) for i in range(4)]))

Which of Ray's names there are, and where they differ: docs/runtime.md.
"""

import array

from menger.runtime import current, exceptions, util
from menger.runtime.driver import init, is_initialized, shutdown
from menger.runtime.remoting import ActorHandle, find_actor as get_actor, method, remote
from menger.runtime.session import ObjectRef

__all__ = [
    "ActorHandle",
    "ObjectRef",
    "cancel",
    "cluster_resources",
    "exceptions",
    "get",
    "get_actor",
    "init",
    "is_initialized",
    "kill",
    "method",
    "put",
    "remote",
    "shutdown",
    "util",
    "wait",
]


def get(object_refs, *, timeout=None):
    """The value of a reference, or the values of a list of them. Raises what made one fail, GetTimeoutError."""
    if type(object_refs) is ObjectRef:
        return current.session().get((object_refs,), timeout)[0]
    if not _are_references(object_refs):
        raise ValueError(f"get takes an ObjectRef or a list of them; this is {type(object_refs).__name__}")
    return current.session().get(object_refs, timeout) if object_refs else []


def _are_references(values):
    return type(values) is list and set(map(type, values)) <= {ObjectRef}


def put(value):
    """Makes an object of a value."""
    if type(value) is ObjectRef:
        raise TypeError("put takes a value; this is an ObjectRef already")
    return current.session().put(value)


def wait(object_refs, *, num_returns=1, timeout=None, fetch_local=True):
    """(the first `num_returns` that are ready, the others), in their order; after `timeout` seconds perhaps fewer."""
    if type(object_refs) is not list:
        raise TypeError("wait takes a list of ObjectRefs")
    if not object_refs:
        return [], []
    try:
        handles = array.array("Q", map(ObjectRef.handle.__get__, object_refs))
    except TypeError:
        raise TypeError("wait takes a list of ObjectRefs") from None
    if not 0 < num_returns <= len(handles):
        raise ValueError(f"num_returns is {num_returns}; it must lie between 1 and {len(handles)}, the number of references")
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
    if type(object_ref) is not ObjectRef:
        raise TypeError(f"cancel takes an ObjectRef; this is {type(object_ref).__name__}")
    current.session().cancel(object_ref, force, recursive)


def kill(actor, *, no_restart=True):
    """Ends an actor's process; the calls that it has not done fail."""
    if not isinstance(actor, ActorHandle):
        raise ValueError(f"kill takes an actor; this is {type(actor).__name__}")
    actor._session.kill(actor._actor, not no_restart)


def cluster_resources():
    """What init has said that this machine has."""
    return dict(current.session().resources)
