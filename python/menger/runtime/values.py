"""Python values as bytes: pickled, what supports the buffer protocol apart, so that arrays are read where they lie."""

import ctypes
import operator
import pickle
import struct
import sys
import threading

from menger.runtime import current

_PLAIN = {int, float, str, bytes, bool, type(None), complex}
_CONTAINERS = {tuple, list}
_ALIGNMENT = 64
_DEEP = 3  # So deep containers are looked into.

_collecting = threading.local()


class Encoded:
    """A value on its way: what is pickled, the buffers that belong to it, and the ObjectRefs inside."""

    __slots__ = ("buffers", "head", "references")

    def __init__(self, head, buffers=(), references=()):
        self.head, self.references = head, references
        self.buffers = [buffer.raw() for buffer in buffers]  # Views that are flat.

    def size(self):
        return len(self.head) + sum(buffer.nbytes for buffer in self.buffers)

    def joined(self):
        """All in one piece, laid out as menger_runtime.h says."""
        if not self.buffers:
            return self.head
        sizes = [buffer.nbytes for buffer in self.buffers]
        parts = [struct.pack(f"=IIQ{len(sizes)}Q", 1, len(sizes), len(self.head), *sizes), self.head]
        at = sum(map(len, parts))
        for buffer in self.buffers:
            parts += (bytes(-at % _ALIGNMENT), buffer)
            at += -at % _ALIGNMENT + buffer.nbytes
        return b"".join(parts)


class _References:
    """The ObjectRefs in a value that is being pickled: there it is a list of them, and their ids are one buffer, adopted at once."""

    def __init__(self):
        self.found = []
        self._place = pickle.PickleBuffer(b"ids")  # Where that goes among the buffers: it is known last.

    def __reduce__(self):
        return (_adopt, (self._place,))

    def fill(self, buffers):
        if self.found:
            at = next(i for i, buffer in enumerate(buffers) if buffer is self._place)
            buffers[at] = pickle.PickleBuffer(b"".join([reference.binary() for reference in self.found]))


def _adopt(identities):
    return current.session().adopt_all(identities)


def collect(reference):
    """What a reference is in the value that is being pickled, as __reduce__ says it; None where nobody pickles for the runtime."""
    references = getattr(_collecting, "references", None)
    if references is None:
        return None
    references.found.append(reference)
    return (operator.getitem, (references, len(references.found) - 1))


def dumps(value):
    if type(value) in _PLAIN:
        return Encoded(pickle.dumps(value, 5))
    buffers, references = [], _References()
    before = getattr(_collecting, "references", None)
    _collecting.references = references
    try:
        if _is_known(value, _DEEP):
            head = pickle.dumps(value, 5, buffer_callback=buffers.append)
        else:
            import cloudpickle  # Takes 20 ms, and whoever sends plain values needs none.

            head = cloudpickle.dumps(value, 5, buffer_callback=buffers.append)
    finally:
        _collecting.references = before
    references.fill(buffers)
    return Encoded(head, buffers, references.found)


def _is_known(value, deep):
    """Whether pickle alone does what cloudpickle would: nothing inside is defined by the program."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind in _CONTAINERS:
        return deep > 0 and all(_is_known(each, deep - 1) for each in value)
    if kind is dict:
        return deep > 0 and all(_is_known(k, deep - 1) and _is_known(v, deep - 1) for k, v in value.items())
    numpy = sys.modules.get("numpy")
    return numpy is not None and kind is numpy.ndarray and not value.dtype.hasobject


def loads(view):
    """The value of bytes or a memoryview; arrays share its memory."""
    if not len(view):
        return None
    if view[0] == 0x80:  # A pickle of its own.
        return pickle.loads(view)
    _, count, head_size = struct.unpack_from("=IIQ", view)
    sizes = struct.unpack_from(f"={count}Q", view, 16)
    view = memoryview(view)
    at = 16 + 8 * count
    head = view[at : at + head_size]
    at += head_size
    buffers = []
    for size in sizes:
        at += -at % _ALIGNMENT
        buffers.append(view[at : at + size])
        at += size
    return pickle.loads(head, buffers=buffers)


class Pin:
    """Keeps a value in shared memory in its place."""

    __slots__ = ("_pin", "_session")

    def __init__(self, session, pin):
        self._session, self._pin = session, pin

    def __del__(self):
        self._session.unpin(self._pin)


def copied(address, size):
    """The bytes there, of a value that lies in a message; where arrays belong to it, they lie at multiples of 64."""
    data = ctypes.string_at(address, size)
    if not data or data[0] == 0x80:
        return data
    room = (ctypes.c_ubyte * (size + _ALIGNMENT))()
    begin = -ctypes.addressof(room) % _ALIGNMENT
    view = memoryview(room).cast("B")[begin : begin + size]
    view[:] = data
    return view.toreadonly()


def shared_bytes(address, size):
    """The bytes there, as an object whose attribute `pin` keeps them: everything that reads them holds it."""
    return (ctypes.c_ubyte * size).from_address(address)


def read_only(shared):
    return memoryview(shared).cast("B").toreadonly()


class _Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


def address_of(raw):
    """Where a memoryview's memory lies; it stays there while the view lives."""
    view = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(raw), ctypes.byref(view), 0)
    try:
        return view.buf
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
