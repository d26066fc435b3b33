"""A host's end of the control segment, through the C functions of libmenger_host.so (library/menger_host.h)."""

import ctypes
import os

# Commands of protocol.h.
DESCRIBE, ATTACH, RESET, STEP, RESET_PARKED, STEP_RANDOMLY, SAVE, LOAD, CLOSE, RENDER, REFUSE, CHECK = range(1, 13)

# What a caller can do about an error: menger's codes.
INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION = 0, 1, 2

LIBRARY_VARIABLE = "MENGER_HOST_LIBRARY"
PATIENCE_SECONDS = 3600.0


def supervise(host):
    """Waits for the end of the forked process `host`, or of menger, kills all that it has left, and ends as it did."""
    _library().menger_host_supervise(host)


class Failure(Exception):
    """What is reported to menger as it stands, without this package's own traceback."""

    def __init__(self, text, code=FAILED_PRECONDITION):
        super().__init__(text)
        self.code = code


class Refused(Exception):
    """What an environment gave cannot be taken: its error, told without a traceback, since the place is not in its code."""


class Control:
    """The requests of menger, one after the other. One object a process.

    `turn(seconds)` answers the last request as done and returns the next, or 0: bound here so that a step costs one call.
    """

    def __init__(self, descriptor):
        # The GIL is let go while it waits, so a user's threads run on.
        self._library = library = _library()
        if library.menger_host_open(descriptor) != 0:
            raise Failure(library.menger_host_error().decode())
        self.turn = library.menger_host_turn
        self.progress = library.menger_host_progress

    def wait(self):
        """The next request: (command, row) as one number, see menger_host_turn."""
        request = 0
        while request == 0:
            request = self._library.menger_host_wait(PATIENCE_SECONDS)
        return request

    def text(self):
        size = ctypes.c_uint64()
        address = self._library.menger_host_text(ctypes.byref(size))
        return ctypes.string_at(address, size.value).decode()

    def say(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        self._library.menger_host_say(data, len(data))

    def fail(self, code, text):
        data = text.encode(errors="replace")
        self._library.menger_host_fail(code, data, len(data))

    def doing(self, text, playing):
        """At what a check is, for the error of a host that hangs or dies there; `playing` decides which deadline holds."""
        data = text.encode()
        self._library.menger_host_doing(data, len(data), playing)

    def first_step(self):
        return self._library.menger_host_first_step()

    def seed(self):
        return self._library.menger_host_seed()

    def take_restart(self):
        """Whether one more environment that failed may begin a fresh episode instead."""
        left = self._library.menger_host_restarts_left()
        self._library.menger_host_use_restarts(1)  # Also where none is left: so menger knows what it lacked.
        return left > 0


def _library():
    library = ctypes.CDLL(os.environ[LIBRARY_VARIABLE])

    def declare(name, result, *arguments):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments

    text = (ctypes.c_char_p, ctypes.c_uint64)
    declare("menger_host_supervise", None, ctypes.c_int32)
    declare("menger_host_error", ctypes.c_char_p)
    declare("menger_host_open", ctypes.c_int, ctypes.c_int)
    declare("menger_host_wait", ctypes.c_int64, ctypes.c_double)
    declare("menger_host_turn", ctypes.c_int64, ctypes.c_double)
    declare("menger_host_fail", ctypes.c_int, ctypes.c_int32, *text)
    declare("menger_host_say", ctypes.c_int, *text)
    declare("menger_host_text", ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
    declare("menger_host_first_step", ctypes.c_int64)
    declare("menger_host_restarts_left", ctypes.c_int64)
    declare("menger_host_seed", ctypes.c_uint64)
    declare("menger_host_use_restarts", ctypes.c_int, ctypes.c_int64)
    declare("menger_host_progress", ctypes.c_int)
    declare("menger_host_doing", ctypes.c_int, *text, ctypes.c_int32)
    return library
