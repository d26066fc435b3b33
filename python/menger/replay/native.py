"""Clients, writers and samplers of the library, as objects. What they give back goes when nobody has it any longer."""

import ctypes
import os
import threading
import time
import weakref

import numpy as np

from menger.replay import addresses, errors, items, table_info
from menger.replay import library as library_lib

_SLICE_S = 0.5  # A call of C is ended so often, so that signals are seen.
_CONNECT_S = 0.2
_MOMENT_S = 0.1
_PATIENCE_S = 60  # For a server that has gone.
_IDLE_MAX = 16  # Writers, and samplers of a table, that are kept for the next.

UNIQUE_DESCRIPTIONS_MAX = 1024  # Of one writer.


def nanoseconds(seconds):
    return int(seconds * 1e9)


class Slices:
    """Times to wait, one after the other, that are `seconds` together; None: without an end."""

    def __init__(self, seconds):
        self._end = None if seconds is None else time.monotonic() + seconds

    def next(self):
        return _SLICE_S if self._end is None else max(0.0, min(_SLICE_S, self._end - time.monotonic()))

    @property
    def over(self):
        return self._end is not None and time.monotonic() >= self._end


class NativeClient:
    """One connection to a server, which is waited for; writers and samplers of it have connections of their own."""

    def __init__(self, address, timeout=None):
        self.library = library = library_lib.load()
        self.process = os.getpid()
        path = addresses.socket_of(address).encode()
        slices = Slices(timeout)
        while True:
            wait = min(_CONNECT_S, slices.next())
            self.handle = library.client_new(path, nanoseconds(wait), nanoseconds(_PATIENCE_S))
            if self.handle:
                break
            if library.error_code() != library_lib.UNAVAILABLE:
                raise library.failure()
            if slices.over:
                raise errors.DeadlineExceededError(f"no server at '{address}' within {timeout} s: {library.failure()}")
        weakref.finalize(self, release, library.client_delete, self.handle, self.process)
        self.tables = table_info.tables(self.info_text())
        self._lock = threading.RLock()  # A writer may go, and come here, wherever memory is asked for.
        self._writers = []  # Those that nobody uses.
        self._samplers = {}
        self._all_writers = weakref.WeakSet()

    def info_text(self):
        return self.library.text(self.library.client_info, self.handle)

    def table(self, name):
        """(index, Notes). Raises ValueError for a table that there is not."""
        found = self.tables.get(name)
        if found is None:
            raise ValueError(f"there is no table '{name}'; there are: {', '.join(self.tables)}")
        return found

    # Those that nobody uses are used again: each has a connection.

    def take_writer(self):
        with self._lock:
            if self._writers:
                return self._writers.pop()
        writer = NativeWriter(self)
        with self._lock:
            self._all_writers.add(writer)
        return writer

    def settle(self):
        """Lets what writers have on their way arrive, for a moment."""
        with self._lock:
            writers = list(self._all_writers)
        for writer in writers:
            if writer.pending > 0:
                writer.settle()

    def give_writer(self, writer):
        if writer.may_be_used_again():
            with self._lock:
                if len(self._writers) < _IDLE_MAX:
                    self._writers.append(writer)

    def take_sampler(self, index):
        with self._lock:
            idle = self._samplers.setdefault(index, [])
            if idle:
                return idle.pop()
        return NativeSampler(self, index)

    def give_sampler(self, sampler):
        sampler.release()
        with self._lock:
            idle = self._samplers.setdefault(sampler.index, [])
            if len(idle) < _IDLE_MAX:
                idle.append(sampler)


def release(function, handle, process):
    """Gives a handle back, in the process that made it."""
    # In a child that was forked the threads are not there that it would wait for.
    if os.getpid() == process:
        function(handle)


class NativeWriter:
    """Columns of rows, and items of them. One thread at a time, but for what the library does meanwhile."""

    def __init__(self, client):
        self._library = library = client.library
        self._failed = False
        self._handle = library.writer_new(client.handle, 0, 0)
        if not self._handle:
            raise library.failure()
        self._idle_columns = {}  # By what they are.
        self._descriptions = {}
        self._finalizer = weakref.finalize(self, release, library.writer_delete, self._handle, client.process)

    @property
    def handle(self):
        """None once it has gone, as when the interpreter ends."""
        return self._handle if self._finalizer.alive else None

    def may_be_used_again(self):
        few = len(self._descriptions) < UNIQUE_DESCRIPTIONS_MAX
        return not self._failed and few and self._library.writer_pending(self.handle) == 0

    def take_column(self, row_bytes, chunk_rows, history):
        idle = self._idle_columns.get((row_bytes, chunk_rows, history))
        return idle.pop() if idle else self._new_column(row_bytes, chunk_rows, history)

    def give_column(self, column, row_bytes, chunk_rows, history):
        self._idle_columns.setdefault((row_bytes, chunk_rows, history), []).append(column)

    def _new_column(self, row_bytes, chunk_rows, history):
        column = ctypes.c_uint32()
        self._check(self._library.writer_column(self.handle, row_bytes, chunk_rows, history, ctypes.byref(column)))
        return column.value

    def describe(self, columns):
        """The column whose only row says this: (type, shape, is_squeezed) of each column of an item."""
        column = self._descriptions.get(columns)
        if column is None:
            description = items.describe(columns)
            column = self._new_column(len(description), 1, 1)
            self.append([column], [np.frombuffer(description, np.uint8)])
            self._descriptions[columns] = column
        return column

    def append(self, columns, arrays):
        """A dense array to the end of each column; returns the rows' numbers."""
        count = len(columns)
        rows = (ctypes.c_int64 * count)()
        self._check(
            self._library.writer_append(
                self.handle,
                count,
                (ctypes.c_uint32 * count)(*columns),
                (ctypes.c_void_p * count)(*[array.__array_interface__["data"][0] for array in arrays]),
                (ctypes.c_uint64 * count)(*[array.nbytes for array in arrays]),
                rows,
            )
        )
        return rows

    def read(self, column, row, array):
        self._check(self._library.writer_read(self.handle, column, row, array.ctypes.data, array.nbytes))

    def add(self, table, priority, ranges):
        """`ranges`: (first row, rows, column) of each."""
        array = (library_lib.Range * len(ranges))(*ranges)
        self._check(self._library.writer_add(self.handle, table, priority, array, len(ranges)))

    def wait(self, left, timeout=None):
        """Until no more than `left` items are not known to be inserted. Raises DeadlineExceededError."""
        slices = Slices(timeout)
        while True:
            result = self._library.writer_await(self.handle, left, nanoseconds(slices.next()))
            if result == library_lib.DEADLINE_EXCEEDED and not slices.over:
                continue
            return self._check(result)

    def settle(self):
        """Lets what is on its way arrive, for a moment."""
        try:
            self.wait(0, _MOMENT_S)
        except (errors.ReverbError, RuntimeError, ValueError):
            pass  # Who wants to know calls `wait`.

    @property
    def pending(self):
        return self._library.writer_pending(self.handle)

    def _check(self, result):
        if result != 0:
            self._failed |= result not in (library_lib.INVALID_ARGUMENT, library_lib.DEADLINE_EXCEEDED)
            raise self._library.failure()

    def close(self):
        """What is not known to be inserted may be lost."""
        self._finalizer()


class NativeSampler:
    """Draws from one table. One thread at a time."""

    def __init__(self, client, index):
        self._library = library = client.library
        self.index = index
        self.handle = library.sampler_new(client.handle, index)
        if not self.handle:
            raise library.failure()
        weakref.finalize(self, release, library.sampler_delete, self.handle, client.process)
        self._items = ctypes.POINTER(library_lib.Item)()
        self._columns = ctypes.POINTER(library_lib.Column)()
        self._count = ctypes.c_uint32()
        self._places = [ctypes.byref(each) for each in (self._items, self._count, self._columns)]

    def draw(self, count, timeout=None):
        """Up to `count` items, at least one. Raises DeadlineExceededError."""
        slices, gone = Slices(timeout), None
        while True:
            result = self._library.sampler_draw(self.handle, count, nanoseconds(slices.next()), *self._places)
            if result == 0:
                return [self._items[i] for i in range(self._count.value)]
            if result == library_lib.UNAVAILABLE:
                gone = gone or Slices(_PATIENCE_S)
            elif result != library_lib.DEADLINE_EXCEEDED:
                raise self._library.failure()
            if slices.over or (gone and gone.over):
                raise self._library.failure()

    def column(self, index):
        return self._columns[index]

    def copy(self, index, array):
        self._library.check(self._library.sampler_copy(self.handle, index, array.ctypes.data, array.nbytes))

    def release(self):
        self._library.sampler_release(self.handle)
