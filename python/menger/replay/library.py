"""The C functions of libmenger_replay.so (src/menger/replay/library/menger_replay.h)."""

import ctypes
import os

from menger.replay import errors

LIBRARY_VARIABLE = "MENGER_REPLAY_LIBRARY"

# 1 more than menger::ErrorCode.
INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION, UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED = range(1, 7)


class Range(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int64), ("count", ctypes.c_uint32), ("column", ctypes.c_uint32)]


class Item(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_uint64),
        ("probability", ctypes.c_double),
        ("priority", ctypes.c_double),
        ("times_sampled", ctypes.c_int64),
        ("table_items", ctypes.c_int64),
        ("description", ctypes.c_void_p),
        ("description_bytes", ctypes.c_uint64),
        ("columns_begin", ctypes.c_uint32),
        ("columns", ctypes.c_uint32),
    ]


class Column(ctypes.Structure):
    _fields_ = [
        ("rows", ctypes.c_uint64),
        ("row_bytes", ctypes.c_uint64),
        ("is_even", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    ]


def find():
    """The library's file: where the variable says, beside this package, or where this tree builds it."""
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return named
    name, here = "libmenger_replay.so", os.path.dirname(os.path.realpath(__file__))
    for folder in (here, os.path.realpath(os.path.join(here, "..", "..", "..", "build", "release"))):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise errors.ReverbError(
        f"there is no {name} in {here} or build/release: build the target menger_replay_library,"
        f" or name the file in {LIBRARY_VARIABLE}"
    )


_loaded = None


def load():
    """The library's functions, without the prefix of their names, as attributes."""
    global _loaded
    if _loaded is None:
        _loaded = Library(find())
    return _loaded


class Library:
    """Each call lets go of the interpreter's lock while it lasts."""

    def __init__(self, file):
        self._library = library = ctypes.CDLL(file)
        pointer, number, text = ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p
        big, count = ctypes.c_int64, ctypes.c_uint64

        def declare(name, result, *arguments):
            function = getattr(library, "menger_replay_" + name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, name, function)

        declare("error", text)
        declare("error_code", number)
        declare("free", None, pointer)
        declare("server_start", pointer, text)
        declare("server_stop", number, pointer, big)
        declare("server_delete", None, pointer)
        declare("server_info", number, pointer, pointer)
        declare("server_can_insert", number, pointer, number, big, pointer)
        declare("server_can_sample", number, pointer, number, big, pointer)
        declare("client_new", pointer, text, big, big)
        declare("client_delete", None, pointer)
        declare("client_info", number, pointer, pointer)
        declare("client_update", number, pointer, number, pointer, pointer, count, pointer)
        declare("client_delete_items", number, pointer, number, pointer, count, pointer)
        declare("client_reset", number, pointer, number)
        declare("client_checkpoint", number, pointer, big)
        declare("writer_new", pointer, pointer, count, number)
        declare("writer_delete", None, pointer)
        declare("writer_column", number, pointer, big, number, number, pointer)
        declare("writer_append", number, pointer, ctypes.c_uint32, pointer, pointer, pointer, pointer)
        declare("writer_read", number, pointer, ctypes.c_uint32, big, pointer, count)
        declare("writer_add", number, pointer, number, ctypes.c_double, pointer, ctypes.c_uint32)
        declare("writer_await", number, pointer, number, big)
        declare("writer_pending", number, pointer)
        declare("sampler_new", pointer, pointer, number)
        declare("sampler_delete", None, pointer)
        declare("sampler_draw", number, pointer, number, big, pointer, pointer, pointer)
        declare("sampler_copy", number, pointer, ctypes.c_uint32, pointer, count)
        declare("sampler_release", None, pointer)

    def failure(self):
        """What the last function that failed on this thread says."""
        code, text = self.error_code(), self.error().decode(errors="replace")
        if code == INVALID_ARGUMENT:
            return ValueError(text)
        if code == DEADLINE_EXCEEDED:
            return errors.DeadlineExceededError(text)
        return RuntimeError(text)

    def check(self, result):
        if result != 0:
            raise self.failure()

    def text(self, function, handle):
        """What a function gives as text."""
        found = ctypes.c_void_p()
        self.check(function(handle, ctypes.byref(found)))
        try:
            return ctypes.string_at(found).decode()
        finally:
            self.free(found)
