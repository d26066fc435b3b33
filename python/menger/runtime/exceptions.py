"""What calls and waiting for them raise, by the names that Ray gives it."""

import contextlib
import functools
import struct
import types


class RayError(Exception):
    """The base of all."""


class RaySystemError(RayError):
    """The runtime itself cannot do what is asked."""


class RayTaskError(RayError):
    """A task or method raised: `cause` is what, and the text has the traceback of the worker.

    What `get` raises is also an instance of the cause's class, so that `except ValueError` catches a ValueError.
    """

    def __init__(self, text, cause=None):
        Exception.__init__(self, text)  # Not the cause's class, which comes next where an error is of both.
        self.text = text
        self.cause = cause

    def __str__(self):
        return self.text

    def __reduce__(self):
        return (task_error, (self.text, self.cause))


class RayActorError(RayError):
    """The actor cannot answer."""


class ActorDiedError(RayActorError):
    """The actor is dead, or never came to life."""


class ActorUnavailableError(RayActorError):
    """The actor's process ended under the call; the actor is made again."""


class WorkerCrashedError(RayError):
    """The worker's process ended while it did the task, more often than its retries allow."""


class NodeDiedError(RayError):
    """The machine that did the task is gone."""


class ObjectLostError(RayError):
    """The value was lost, and what made it is no longer known."""


class ObjectStoreFullError(RayError):
    """The store has no room for the value."""


class OutOfMemoryError(RayError):
    """The worker used more memory than it may, or the store is full of values in use."""


class TaskCancelledError(RayError):
    """Somebody cancelled the task."""


class GetTimeoutError(RayError, TimeoutError):
    """The values were not ready in time."""


class RuntimeEnvSetupError(RayError):
    """The workers cannot have the environment that they were to have."""


# In the order of menger::FailureKind, after what a task raises.
_KINDS = (
    WorkerCrashedError,
    NodeDiedError,
    ActorDiedError,
    ActorUnavailableError,
    ObjectLostError,
    GetTimeoutError,
    TaskCancelledError,
    OutOfMemoryError,
)


def task_error(text, cause):
    """A RayTaskError that is also of the cause's class, where a class can be both."""
    try:
        error = _error_class(type(cause)).__new__(_error_class(type(cause)))
        error.args = cause.args
        error.__dict__.update(cause.__dict__)
        _copy_fields(cause, error)
    except Exception:  # No class to derive from, or one with a layout of its own.
        error = RayTaskError.__new__(RayTaskError)
    RayTaskError.__init__(error, text, cause)
    if cause is not None and type(error) is not RayTaskError:
        error.args = cause.args
    return error


def _copy_fields(cause, error):
    """What exceptions of Python itself keep outside __dict__: errno, filename, the start of what cannot be decoded."""
    for base in type(cause).__mro__:
        for name, field in vars(base).items():
            if isinstance(field, types.MemberDescriptorType) and not name.startswith("__"):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(error, name, getattr(cause, name))


@functools.lru_cache(maxsize=1000)
def _error_class(cause):
    if cause is type(None) or not issubclass(cause, Exception) or issubclass(cause, RayTaskError):
        return RayTaskError
    return type(f"RayTaskError({cause.__name__})", (RayTaskError, cause), {"__module__": __name__})


def failure(data, decode):
    """The exception for a failed call: `data` are a menger::TaskFailure as its Encode writes it; `decode` reads its value."""
    kind, at, texts = data[0], 3, []
    for _ in range(5):
        (size,) = struct.unpack_from("=I", data, at)
        texts.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    value = texts.pop()
    name, text, task, worker = (each.decode(errors="replace") for each in texts)
    if kind > 0:
        where = f" on {worker}" if worker else ""
        return _KINDS[kind - 1](f"task '{task}' failed{where}: {text}" if task else text)
    cause = None
    if value:
        try:
            cause = decode(value)
        except Exception as error:
            text += f"\n(The exception itself cannot be read here: {error!r})"
    return task_error(text if value or not name else f"{name}: {text}", cause)
