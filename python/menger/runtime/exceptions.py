"""What calls and waiting for them raise, by the names that Ray gives it."""

import builtins
import contextlib
import functools
import struct
import sys
import types


class RayError(Exception):
    """The base of all."""


class RaySystemError(RayError):
    """The runtime itself cannot do what is asked."""


class NotOfThisRuntimeError(RaySystemError, ValueError):
    """What is used is of a runtime that was shut down, or of the process of which this one is a fork. In Ray a ValueError."""


class RayTaskError(RayError):
    """A task or method raised: `cause` is what, and the text has the traceback of the worker.

    What `get` raises is also an instance of the cause's class, so that `except ValueError` catches a ValueError.
    """

    def __init__(self, function_name, traceback_str, cause=None, **_of_a_process):
        Exception.__init__(self, traceback_str)  # Not the cause's class, which comes next where an error is of both.
        self.function_name = function_name
        self.text = traceback_str
        self.cause = cause

    def __str__(self):
        return self.text

    def __reduce__(self):
        return (task_error, (self.text, self.cause))

    def as_instanceof_cause(self):
        """This, if it is an instance of the cause's class already, or one that is."""
        return self if type(self) is not RayTaskError or self.cause is None else task_error(self.text, self.cause)

    make_dual_exception_instance = as_instanceof_cause


class RayActorError(RayError):
    """The actor cannot answer. `cause`: what its construction raised, where it is that; `actor_id`: which actor, where that is known."""

    cause = actor_id = None


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
    """Somebody cancelled the task, or one on whose result it depends. `task_id`: which it is, where `get` raises it."""

    task_id = None

    def of(self, reference):
        """This, where it is the error of that reference's call."""
        if self.task_id is None:
            self.task_id = reference.task_id()
            self.args = (f"Task: {self.task_id.hex()} was cancelled. {self}",)
        return self


class TaskPlacementGroupRemoved(RayError):
    """The placement group of the task was removed, or what was asked for is the group itself."""


class ActorPlacementGroupRemoved(RayError):
    """Of Ray's; here that is an ActorDiedError."""


class GetTimeoutError(RayError, TimeoutError):
    """The values were not ready in time."""


class RuntimeEnvSetupError(RayError):
    """The workers cannot have the environment that they were to have."""


class ObjectFetchTimedOutError(ObjectLostError):
    """Of Ray's; nothing here raises it, nor those that follow: a program that catches them may."""


class ObjectFreedError(ObjectLostError):
    pass


class OwnerDiedError(ObjectLostError):
    pass


class ReferenceCountingAssertionError(ObjectLostError, AssertionError):
    pass


class ObjectReconstructionFailedError(ObjectLostError):
    pass


class OutOfDiskError(RayError):
    pass


class PendingCallsLimitExceeded(RayError):
    """The actor has as many calls that are not done as its max_pending_calls allows."""


class LocalRayletDiedError(RayError):
    pass


class TaskUnschedulableError(RayError):
    """No node has what the task needs, or the only one that may do it is gone."""


class ActorUnschedulableError(RayError):
    """The same of an actor."""


class CrossLanguageError(RayError):
    pass


class AsyncioActorExit(RayError):
    pass


class UnserializableException(RayError):
    pass


class AuthenticationError(RayError):
    def __str__(self):
        return f"{super().__str__()}. See https://docs.ray.io/en/latest/ray-security/token-auth.html of Ray, whose clusters ask for tokens."


class OufOfBandObjectRefSerializationException(RayError):
    pass


class Failed:
    """A value that stands for the error of a generator which has yielded others before: whoever reads it gets that raised."""

    def __init__(self, text, packed):
        self.text, self.packed = text, packed  # The cause as bytes: whether it can be read, only the reader knows.

    def error(self, decode):
        cause, why = _decode_cause(self.packed, decode)
        return task_error(self.text + why, cause)


def of_reference(reference, error):
    """What `get` raises for a reference: `error`, with what only the reference knows."""
    if isinstance(error, TaskCancelledError):
        return error.of(reference)
    actor = reference.of_actor and reference.of_actor.hex()
    if actor and isinstance(error, OwnerDiedError):
        error = ActorDiedError(str(error))  # It went with the program that had its actor.
    if isinstance(error, RayActorError):
        error.actor_id = error.actor_id or actor
    return error


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
    OwnerDiedError,
)


_GROUP_REMOVED = "the placement group was removed"
_NO_NODE = ("the only node that may do it", "no node has what it needs", "cannot do this program's calls")
_UNSCHEDULABLE = {NodeDiedError: TaskUnschedulableError, ActorDiedError: ActorUnschedulableError}

# By which words programs know why an actor is dead: those of the node, and Ray's.
_ACTOR_ENDS = (
    ("its construction threw", "an error raised in its creation task,"),
    ("the actor was killed by its user", "The actor is dead because it was killed by `ray.kill`"),
    ("its worker", "The actor is dead because its worker process has died: it"),
)


def task_error(text, cause):
    """A RayTaskError that is also of the cause's class, where a class can be both."""
    kind = _error_class(type(cause))
    if kind is not RayTaskError:
        with contextlib.suppress(Exception):  # The class may have a layout, a constructor or properties that do not go with it.
            return _of_both(kind, text, cause)
    return RayTaskError("", text, cause)


def _of_both(kind, text, cause):
    """An instance with what the cause has."""
    group = (cause.message, cause.exceptions) if isinstance(cause, _GROUP) else ()
    try:
        error = kind.__new__(kind, *group)
    except TypeError:  # MemoryError's wants no classes that are made of it.
        error = Exception.__new__(kind)
    error.__dict__.update(getattr(cause, "__dict__", {}))
    _copy_fields(cause, error)
    RayTaskError.__init__(error, "", text, cause)
    return error


def _copy_fields(cause, error):
    """What exceptions of Python itself keep outside __dict__: errno, filename, the start of what cannot be decoded."""
    for base in type(cause).__mro__:
        for name, field in vars(base).items():
            if isinstance(field, types.MemberDescriptorType) and not name.startswith("__"):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(error, name, getattr(cause, name))


# Their own class would end, or cancel, whoever asks for the result.
_NOT_ITSELF = (KeyboardInterrupt, SystemExit, GeneratorExit)
_GROUP = getattr(builtins, "BaseExceptionGroup", ())  # From Python 3.11 on.


@functools.lru_cache(maxsize=1000)
def _error_class(cause):
    asyncio = sys.modules.get("asyncio")  # Takes 20 ms, and nobody has its errors without it.
    not_itself = (*_NOT_ITSELF, RayTaskError, *([asyncio.CancelledError] if asyncio else ()))
    if cause is type(None) or issubclass(cause, not_itself):
        return RayTaskError
    try:
        # As in Ray, whose programs find the exception itself there. The class may have a property of that name.
        members = {"__module__": __name__, "args": property(lambda error: (error.cause,))}
        return type(f"RayTaskError({cause.__name__})", (RayTaskError, cause), members)
    except TypeError:
        import logging  # Seldom needed.

        logging.getLogger(__name__).warning(
            "No class can be made of %s. This exception is raised as RayTaskError only. You can use"
            " `ray_task_error.cause` to access the user exception.",
            cause.__name__,
        )
        return RayTaskError


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
        kind = _KINDS[kind - 1]
        if kind is TaskCancelledError and _GROUP_REMOVED in text:
            kind = TaskPlacementGroupRemoved
        if any(words in text for words in _NO_NODE):
            kind = _UNSCHEDULABLE.get(kind, kind)
        if kind is ActorDiedError:
            text = next((text.replace(ours, known, 1) for ours, known in _ACTOR_ENDS if ours in text), text)
        error = kind(f"task '{task}' failed{where}: {text}" if task else text)
        if value and isinstance(error, RayActorError):
            error.cause = _decode_cause(value, decode)[0]
        return error
    if name == KeyboardInterrupt.__name__:
        return TaskCancelledError(f"task '{task}' was interrupted: {text}")
    cause = None
    if value:
        cause, why = _decode_cause(value, decode)
        text += why
    return task_error(text if value or not name else f"{name}: {text}", cause)


def _decode_cause(value, decode):
    """(the exception, "" or why it cannot be read)."""
    try:
        return decode(value), ""
    except Exception as error:
        return None, f"\n(The exception itself cannot be read here: {error!r})"
