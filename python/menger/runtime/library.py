"""The C functions of libmenger_runtime.so (src/menger/runtime/library/menger_runtime.h)."""

import ctypes
import functools
import os

from menger.runtime import exceptions

LIBRARY_VARIABLE = "MENGER_RUNTIME_LIBRARY"

# menger::ErrorCode.
INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION, UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED = range(6)

# What is called.
FUNCTION, CONSTRUCT, METHOD = range(3)

ID_BYTES = 16


class Id(ctypes.Structure):
    _fields_ = [("high", ctypes.c_uint64), ("low", ctypes.c_uint64)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint64)]


OnLine = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64)


class RuntimeOptions(ctypes.Structure):
    _fields_ = [
        ("workers", ctypes.c_int32),
        ("workers_ahead", ctypes.c_int32),
        ("cpus", ctypes.c_double),
        ("gpus", ctypes.c_double),
        ("resources", ctypes.c_char_p),
        ("store_bytes_max", ctypes.c_uint64),
        ("program", ctypes.POINTER(ctypes.c_char_p)),
        ("variables", ctypes.POINTER(ctypes.c_char_p)),
        ("folder", ctypes.c_char_p),
        ("memory_bytes_max", ctypes.c_uint64),
        ("spill_folder", ctypes.c_char_p),
        ("address", ctypes.c_char_p),
        ("cluster_token", ctypes.c_char_p),
        ("tls_certificate", ctypes.c_char_p),
        ("tls_key", ctypes.c_char_p),
        ("tls_authorities", ctypes.c_char_p),
        ("join_seconds", ctypes.c_double),
        ("node_wait_seconds", ctypes.c_double),
        ("on_line", OnLine),
    ]


class CallOptions(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("results", ctypes.c_int32),
        ("prefix", Bytes),
        ("definition", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("cpus", ctypes.c_double),
        ("gpus", ctypes.c_double),
        ("resources", ctypes.c_char_p),
        ("retries", ctypes.c_int32),
        ("restarts", ctypes.c_int32),
        ("retry_errors", ctypes.c_int32),
        ("concurrency", ctypes.c_int32),
        ("detached", ctypes.c_int32),
        ("actor", Id),
        ("actor_object", ctypes.c_void_p),
        ("group", ctypes.c_void_p),
        ("group_bundles", ctypes.c_int32),
        ("bundle", ctypes.c_int32),
        ("stream_ahead", ctypes.c_int32),
        ("preferred", ctypes.c_char_p),
        ("spread", ctypes.c_int32),
    ]


class CallAbout(ctypes.Structure):
    _fields_ = [
        ("task", Id),
        ("parent", Id),
        ("actor", Id),
        ("actor_object", Id),
        ("group", Id),
        ("name", Bytes),
        ("resources", Bytes),
        ("is_further_run", ctypes.c_int32),
    ]


Take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)


DoCall = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_int32,
)
DropActor = ctypes.CFUNCTYPE(None, ctypes.c_uint64)


class WorkerHooks(ctypes.Structure):
    _fields_ = [("call", DoCall), ("drop_actor", DropActor)]


@functools.lru_cache(maxsize=100)
def array_of(kind, count):
    """The type; one that nobody keeps is made anew, and left to the collector, for each value."""
    return kind * count


def strings(texts):
    """A list of C strings that ends with null."""
    return (ctypes.c_char_p * (len(texts) + 1))(*[text.encode() for text in texts], None)


def find():
    """The library's file: where the variable says, beside this package, or where this tree builds it."""
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return named
    name, here = "libmenger_runtime.so", os.path.dirname(os.path.realpath(__file__))
    for folder in (here, os.path.realpath(os.path.join(here, "..", "..", "..", "build", "release"))):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise exceptions.RaySystemError(
        f"there is no {name} in {here} or build/release: build the target menger_runtime_library,"
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
    """A call lets go of the interpreter's lock while it lasts, unless it is short, waits for nothing and calls nothing back: where other
    threads are busy, one that lets go of the lock has it back late."""

    def __init__(self, file):
        self.file = file
        self.when_cancelled = None  # In a worker: the exception of a call that was cancelled while it waited.
        self._library = ctypes.CDLL(file)
        self._short = ctypes.PyDLL(file)
        pointer, count, number, text = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_char_p

        def declare(name, result, *arguments, of=self._library, known_as=None):
            function = getattr(of, name)
            function.restype = result
            function.argtypes = arguments
            setattr(self, known_as or name.removeprefix("menger_runtime_").removeprefix("menger_"), function)

        def declare_short(name, result, *arguments, known_as=None):
            declare(name, result, *arguments, of=self._short, known_as=known_as)

        value = (text, count, pointer, count, pointer, count)
        declare("menger_runtime_error", text)
        declare_short("menger_runtime_error_code", number)
        declare("menger_runtime_open", pointer, ctypes.POINTER(RuntimeOptions))
        declare("menger_runtime_close", None, pointer)
        declare("menger_runtime_callable", pointer, pointer, ctypes.POINTER(CallOptions))
        declare("menger_runtime_drop_callable", None, pointer)
        declare("menger_runtime_call", pointer, pointer, pointer, text, count, pointer, count, pointer)
        declare("menger_runtime_create", pointer, pointer, pointer, text, count, pointer, count, ctypes.POINTER(Id))
        declare("menger_runtime_stream", pointer, pointer, pointer, text, count, pointer, count, ctypes.POINTER(Id))
        declare("menger_runtime_item", pointer, pointer, text, count)
        declare("menger_runtime_take", None, pointer, text, count)
        declare("menger_runtime_put", pointer, pointer, *value)
        declare("menger_runtime_define", pointer, pointer, *value)
        declare("menger_runtime_reserve", pointer, pointer, pointer, count, number, text)
        declare("menger_runtime_get", pointer, pointer, pointer, count, ctypes.c_double)
        declare("menger_runtime_pin", pointer, pointer, count)
        declare("menger_runtime_unpin", None, pointer)
        declare("menger_runtime_drop_batch", None, pointer)
        declare("menger_runtime_wait", number, pointer, pointer, count, count, ctypes.c_double, pointer)
        declare_short("menger_runtime_drop", None, pointer)
        declare_short("menger_runtime_id", None, pointer, ctypes.POINTER(Id))
        declare("menger_runtime_adopt_all", number, pointer, text, count, pointer)
        declare("menger_runtime_adopt", pointer, pointer, text)
        declare("menger_runtime_cancel", number, pointer, pointer, number, number)
        declare("menger_runtime_kill", number, pointer, text, pointer, number)
        declare("menger_runtime_find", pointer, pointer, text, ctypes.POINTER(Id), ctypes.POINTER(ctypes.c_int32))
        declare("menger_runtime_ask", number, text, text, ctypes.c_double, Take)
        declare("menger_runtime_serve", number, ctypes.POINTER(WorkerHooks))
        declare_short("menger_runtime_show_construction", None, text)
        declare("menger_runtime_is_cancelled", number, pointer)
        declare("menger_runtime_leave", None, pointer)
        declare("menger_frame_result", number, pointer, number, *value)
        declare_short("menger_frame_result", number, pointer, number, *value, known_as="frame_short_result")
        declare("menger_frame_emit", number, pointer, *value)
        declare_short("menger_frame_is_cancelled", number, pointer)
        declare_short("menger_frame_about", None, pointer, ctypes.POINTER(CallAbout))
        declare_short("menger_frame_begun", None, pointer, number)
        declare_short("menger_frame_leave", None, pointer)
        declare_short("menger_frame_enter", None, pointer)
        declare_short("menger_frame_actor", None, pointer, count)
        declare("menger_frame_fail", None, pointer, text, text, ctypes.POINTER(Bytes), number)
        declare_short("menger_frame_object", number, pointer, count, ctypes.POINTER(Id))

    def failure(self):
        """What the last function that failed on this thread says."""
        code, text = self.error_code(), self.error().decode(errors="replace")
        if code == INVALID_ARGUMENT:
            return ValueError(text)
        if code == CANCELLED and self.when_cancelled is not None:
            return self.when_cancelled()
        if code == FAILED_PRECONDITION:
            return exceptions.NotOfThisRuntimeError(text)
        if code == UNAVAILABLE:
            return exceptions.ObjectStoreFullError(text)
        return exceptions.RaySystemError(text)
