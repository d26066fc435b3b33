"""Exceptions on their way from a worker to whoever asks for the result."""

import os
import traceback

from menger.runtime import cluster, exceptions, values

_BYTES_MAX = 256 * 1024
_OWN = os.path.dirname(__file__) + os.sep
_HEADER = "Traceback (most recent call last):\n"


def describe(error, where):
    """The text of an exception for whoever asks for the result, and what it was at first. `where`: what place() says."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        _leave_out_own(shown)
        text = "".join(shown.format()).removeprefix(_HEADER)
    except BaseException as why:  # Its own methods may raise anything.
        return f"{where}\n{type(error).__name__} (it cannot be shown: {type(why).__name__})\n", error
    if len(text) > _BYTES_MAX:
        text = text[: _BYTES_MAX // 2] + "\n...\n" + text[-_BYTES_MAX // 4 :]
    cause = error
    while isinstance(cause, exceptions.RayTaskError) and cause.cause is not None:
        cause = cause.cause
    return f"{where}\n{text}", cause


def place(name, actor, shown):
    """Which call raised, and where it ran. `actor`: whose method it is, or None; `shown`: how that is shown."""
    of_actor = f", actor_id={actor.identity.hex()}, repr={shown}" if actor is not None else ""
    return f"ray::{name}() (pid={os.getpid()}, ip={cluster.get_node_ip_address()}{of_actor})"


def pack(cause):
    """An exception as bytes; of one that cannot travel, a RayError that says why."""
    try:
        packed = values.dumps(cause).joined()
        if len(packed) <= _BYTES_MAX:
            return packed
        why = f"it has {len(packed)} bytes, more than {_BYTES_MAX}"
    except BaseException as error:
        why = repr(error)
    return values.dumps(exceptions.RayError(f"a {type(cause).__name__} isn't serializable: {why}")).joined()


def _leave_out_own(shown):
    """Lines of the runtime itself say nothing to whoever has written the function, unless there are no others."""
    theirs = [frame for frame in shown.stack if not frame.filename.startswith(_OWN)]
    shown.stack[:] = theirs or shown.stack[-1:]
    for inner in (shown.__cause__, shown.__context__):
        if inner is not None:
            _leave_out_own(inner)


def shown(run):
    """Calls what shall not keep the rest from happening: whatever it raises is printed."""
    try:
        run()
    except BaseException:
        traceback.print_exc()
