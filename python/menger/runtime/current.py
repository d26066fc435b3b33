"""Which session this process has open. A module of its own, because values, of which sessions are made, ask for it too."""

import contextvars
import functools
import os
import threading

# The runtime_context.Call that this thread, or this coroutine, does.
running = contextvars.ContextVar("menger call", default=None)

_opened = None
_open = None
_opening = threading.RLock()


def set_opener(open_session):
    """Says what opens a session where something is called without one."""
    global _open
    _open = open_session


def alone(function):
    """Opens or closes a session: one thread at a time."""

    @functools.wraps(function)
    def wrapped(*arguments, **options):
        with _opening:
            return function(*arguments, **options)

    return wrapped


def session():
    """The open session; what calls something without one opens it."""
    if _opened is None:
        with _opening:
            if _opened is None:  # Of threads that call first at once one opens it.
                _open()
    return _opened


def opened():
    """The open session or None."""
    return _opened


def set_session(session):
    global _opened
    _opened = session


def _begin_fork():
    global _opening
    _opening = threading.RLock()  # Some other thread may have had it.
    if _opened is not None:
        _opened.forget_threads()


os.register_at_fork(after_in_child=_begin_fork)
