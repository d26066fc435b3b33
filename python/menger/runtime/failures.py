"""Exceptions on their way from a worker to whoever asks for the result."""

import os
import traceback

from menger.runtime import exceptions, values

_BYTES_MAX = 256 * 1024
_OWN = tuple(os.path.join(os.path.dirname(__file__), name) for name in ("worker.py", "coroutines.py"))


def describe(error):
    """The text of an exception for whoever asks for the result, and what it was at first."""
    try:
        text = "".join(traceback.format_exception(type(error), error, _without_own(error.__traceback__)))
    except BaseException as why:  # Its own methods may raise anything.
        return f"pid={os.getpid()}\n{type(error).__name__} (it cannot be shown: {type(why).__name__})\n", error
    if len(text) > _BYTES_MAX:
        text = text[: _BYTES_MAX // 2] + "\n...\n" + text[-_BYTES_MAX // 4 :]
    cause = error
    while isinstance(cause, exceptions.RayTaskError) and cause.cause is not None:
        cause = cause.cause
    return f"pid={os.getpid()}\n{text}", cause


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


def _without_own(trace):
    while trace is not None and trace.tb_frame.f_code.co_filename in _OWN and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def shown(run):
    """Calls what shall not keep the rest from happening: whatever it raises is printed."""
    try:
        run()
    except BaseException:
        traceback.print_exc()
