"""This process's way to its node: the driver's, which embeds the node, or a worker's."""

import array
import collections
import copy
import ctypes
import functools
import json
import struct
import threading
import time
import types
import warnings
import weakref

from menger.runtime import current, exceptions, identities, library, values

# A driver's waits are cut into slices, between which signals are heard. Those of a call are not: the library ends them when it
# is cancelled, and the node has to know for how long a call may wait.
_SLICE_SECONDS = 0.1
_FOREVER = 1e9

# What is longer goes through the store.
INLINE_BYTES_MAX = 48 * 1024

_REFERENCES_MAX = 8190  # With one call, that of its other arguments among them; the library counts two more.
BY_REFERENCE = b"\x02"  # Instead of the arguments: they are the value of the first reference.

# Instead of a number of items of a stream: no more are wanted, and that the call goes on nevertheless.
DROPPED = 2**64 - 1
LEFT = DROPPED - 1

_MADE_ACTORS_MAX = 10_000

_ASK_SECONDS = 10.0
_UNMADE_SECONDS = 10.0

_ENTRY = struct.Struct("=QQII")


class _Nobody:
    """Of whom a reference is that was never made."""

    @staticmethod
    def drop(_handle):
        pass


class ObjectRef:
    """A value that is there or will be. It keeps its object; equal to every other reference on the same."""

    __slots__ = ("_id", "_session", "__weakref__", "handle", "of_actor", "place")

    __class_getitem__ = classmethod(types.GenericAlias)  # ObjectRef[int], in annotations.

    def __init__(self, handle=None, session=None):
        if session is None:
            self.handle, self._session = None, _Nobody
            raise TypeError("an ObjectRef is what calls and put give; none is made by itself, nor of the bytes of an id")
        self.handle, self._session, self._id = handle, session, None
        self.of_actor = None  # The actor whose method gives it, where that is known.

    def __del__(self):
        self._session.drop(self.handle)

    def binary(self):
        if self._id is None:
            self._id = self._session.id_of(self.handle)
        return self._id

    def hex(self):
        return self.binary().hex()

    def is_nil(self):
        return False

    def task_id(self):
        """The call whose result this is; of what was put, and of one of several results elsewhere than where it was called, no call."""
        return identities.task_of(self.binary(), getattr(self, "place", 0))

    def job_id(self):
        return identities.Identity.fromhex(self._session.name[:8])

    def __hash__(self):
        return hash(self.binary())

    def __eq__(self, other):
        return type(other) is ObjectRef and (self is other or self.binary() == other.binary())

    def __repr__(self):
        return f"ObjectRef({self.hex()})"

    def __reduce__(self):
        collected = values.collect(self)
        if collected is not None:
            return collected
        self._session.kept.append(self)  # Nobody will say when the copy is gone.
        return (_adopt, (self.binary(), self._session.name))

    def future(self):
        """A concurrent.futures.Future of the value."""
        from menger.runtime import waiting

        return waiting.future(self, self._session)

    def _on_completed(self, call):
        """Calls it with the value, or with what getting that raises, on a thread of its own once that is there."""
        self.future().add_done_callback(lambda done: call(done.exception() or done.result()))

    def as_future(self, _internal=False):
        """An asyncio.Future of the value, of the loop that runs."""
        import asyncio

        from menger.runtime import waiting

        return waiting.future_of_loop(self, self._session, asyncio.get_event_loop())

    def __await__(self):
        return self.as_future().__await__()


def _adopt(identity, name):
    opened = current.opened()
    if opened is None or opened.name != name:
        raise exceptions.NotOfThisRuntimeError("a pickled ObjectRef is of another runtime, or of one that was shut down")
    return opened.adopt(identity)


# An actor that was found by its name; `kept`: a reference on what stands for it.
Named = collections.namedtuple("Named", "actor kept of_another")


class Session:
    """One open runtime, in all its processes of the same name. Of a closed one nothing can be asked; what it gave can be dropped."""

    def __init__(self, functions, runtime, name, namespace, driver, in_worker=False):
        self.in_worker = in_worker
        self.namespace = namespace or name  # Of actors' names where none is said,
        self.own_namespace = not namespace  # which is this program's alone.
        self.driver = driver  # Its process; None where that runs on another machine.
        self.place = None  # A members.Place.
        self.actor = None  # The runtime_context.Actor that lives in this worker.
        self.library, self.runtime, self.name = functions, runtime, name
        self.drop, self.unpin = functions.drop, functions.unpin
        self.drop_callable = functions.drop_callable
        self._call, self._create, self._stream, self._get = functions.call, functions.create, functions.stream, functions.get
        self.kept = []  # References that live as long as this.
        self._unmade = []  # Those on detached actors that may be not there yet.
        self.resources = {}
        self.made_actors = {}  # The classes of the last actors that this process has made, by their ids.
        self.captured = None  # The Placement of calls that are told none,
        self.environment = {}  # and the runtime_env: that of the call which makes them.
        self.groups = weakref.WeakValueDictionary()  # Placement groups that this process has made, by their ids.
        self.waiter = None  # Who waits for futures.
        self._closing = False
        self._waiting = set()  # The threads that wait inside of the library.
        self._slice = _FOREVER if self.in_worker else _SLICE_SECONDS

    def await_at_end(self, reference):
        """What makes a detached actor may need what this process has: it does not end before the actor is there."""
        self._unmade[:] = [each for each in self._unmade if not any(self.wait(array.array("Q", [each.handle]), 1, 0))] + [reference]

    def close(self):
        if self._unmade and not self.in_worker:
            made = sum(self.wait(array.array("Q", [each.handle for each in self._unmade]), len(self._unmade), _UNMADE_SECONDS))
            if made < len(self._unmade):
                count = len(self._unmade) - made
                warnings.warn(f"{count} detached actors are not there yet: they fail if they need what ends with this program", stacklevel=2)
        self._unmade.clear()
        self.kept.clear()
        self._closing = True
        if self.waiter is not None:
            self.waiter.stop()
        while self._waiting:
            time.sleep(0.001)
        runtime, self.runtime = self.runtime, None
        self.library.close(runtime)

    def forget_threads(self):
        """In a fork, which has none but the one that made it: the library says to whatever is asked for that it is one."""
        self.waiter = None
        self._waiting = set()

    def within(self, captured, environment):
        """This session for a call, or an actor, of whose options something goes to what it calls. Who has it leaves it at the end."""
        made = copy.copy(self)
        made.captured, made.environment, made.waiter = captured, environment, None
        return made

    def make_calls_of_coroutines(self):
        """From now on whoever calls something here may be one of several calls that a thread does: which, it knows."""
        self._call, self._create, self._stream = (
            functools.partial(_make_as_caller, make) for make in (self._call, self._create, self._stream)
        )

    def leave(self):
        """Functions that were called by it remember it: it must not keep a group."""
        self.captured = None
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.stop()

    def _wait_inside(self, wait, *arguments):
        """Calls a function of the library that waits for a slice."""
        thread = threading.get_ident()
        self._waiting.add(thread)
        try:
            if self._closing:
                raise exceptions.NotOfThisRuntimeError("the runtime that this is of was shut down")
            return wait(self.runtime, *arguments)
        finally:
            self._waiting.discard(thread)

    # ---- References.

    def id_of(self, handle):
        identity = library.Id()
        self.library.id(handle, ctypes.byref(identity))
        return bytes(identity)

    def adopt(self, identity):
        return self._reference(self.library.adopt(self.runtime, identity))

    def adopt_all(self, identities):
        """References on the objects whose ids lie in a buffer, one after the other."""
        identities = bytes(identities)
        handles = array.array("Q", bytes(len(identities) // 2))
        address, count = handles.buffer_info()
        if self.library.adopt_all(self.runtime, identities, count, address) != 0:
            raise self.library.failure()
        return [ObjectRef(handle, self) for handle in handles]

    def _reference(self, handle):
        if not handle:
            raise self.library.failure()
        return ObjectRef(handle, self)

    # ---- Values.

    def put(self, value):
        return self.put_encoded(values.dumps(value))

    def put_encoded(self, encoded):
        return self._reference(self.library.put(self.runtime, *c_value(encoded)[1]))

    def define(self, value, check_size):
        """A reference on what is stored once a job, however often and by whom it is defined: it goes by its bytes."""
        encoded = values.dumps(value)
        check_size(encoded.size())
        _kept, packed = c_value(encoded)
        return self._reference(self.library.define(self.runtime, *packed))

    def get(self, references, timeout=None):
        """The values of a list of references."""
        batch = self._fetch([reference.handle for reference in references], timeout)
        table = ctypes.string_at(batch, _ENTRY.size * len(references))
        try:
            return [self.read_value(batch, i, *entry) for i, entry in enumerate(_ENTRY.iter_unpack(table))]
        except (exceptions.RayActorError, exceptions.OwnerDiedError, exceptions.TaskCancelledError) as error:
            failed = next(i for i, entry in enumerate(_ENTRY.iter_unpack(table)) if entry[2])
            raise exceptions.of_reference(references[failed], error) from error.__cause__
        finally:
            self.library.drop_batch(batch)

    def _fetch(self, handles, timeout):
        packed = array.array("Q", handles)
        address, count = packed.buffer_info()
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = self._slice if end is None else min(self._slice, max(0.0, end - time.monotonic()))
            batch = self._wait_inside(self._get, address, count, left)
            if batch:
                return batch
            if self.library.error_code() != library.DEADLINE_EXCEEDED:
                raise self.library.failure()
            if end is not None and time.monotonic() >= end:
                raise exceptions.GetTimeoutError(f"get timed out: {count} objects were not all ready in {timeout} s")

    def read_value(self, batch, index, address, size, failed, shared):
        if failed:
            raise exceptions.failure(ctypes.string_at(address, size), values.loads)
        if not shared:
            return _loads(values.copied(address, size), index)
        memory = values.shared_bytes(address, size)
        memory.pin = values.Pin(self, self.library.pin(batch, index))
        return _loads(values.read_only(memory), index)

    def fetch(self, references):
        """The values of references, to be read later and by whichever thread."""
        return Fetched(self, self._fetch([reference.handle for reference in references], None), len(references))

    def pin(self, reference):
        """Keeps the value of a reference where it is, for as long as what this gives lives."""
        batch = self._fetch([reference.handle], None)
        try:
            return values.Pin(self, self.library.pin(batch, 0))
        finally:
            self.library.drop_batch(batch)

    def wait(self, handles, wanted, timeout):
        """Which are ready, of an array of handles, once `wanted` are or the time has passed: a byte each. No more is looked at than that takes."""
        address, count = handles.buffer_info()
        ready = array.array("B", bytes(count))
        flags_at = ready.buffer_info()[0]
        end = time.monotonic() + (_FOREVER if timeout is None else timeout)
        while True:
            left = max(0.0, end - time.monotonic())
            if self._wait_inside(self.library.wait, address, count, wanted, min(left, self._slice), flags_at) != 0:
                raise self.library.failure()
            flags = ready.tobytes()
            if left == 0 or count - flags.count(0) >= wanted:
                return flags

    def has_failed(self, reference):
        """Whether what a reference that is ready stands for has failed."""
        batch = self._fetch([reference.handle], None)
        try:
            return bool(_ENTRY.unpack(ctypes.string_at(batch, _ENTRY.size))[2])
        finally:
            self.library.drop_batch(batch)

    def raise_failure(self, reference):
        """Raises what a reference that is ready failed with, if it did; its value is not looked at."""
        batch = self._fetch([reference.handle], None)
        try:
            address, size, failed, _shared = _ENTRY.unpack(ctypes.string_at(batch, _ENTRY.size))
            if failed:
                raise exceptions.failure(ctypes.string_at(address, size), values.loads)
        finally:
            self.library.drop_batch(batch)

    # ---- Calls.

    def make_callable(self, options):
        made = self.library.callable(self.runtime, ctypes.byref(options))
        if not made:
            raise self.library.failure()
        return made

    def call(self, made, results, arguments, keywords):
        """Calls; a reference on the result, or a list of `results` of them."""
        payload, handles, _kept = self._encode_arguments(arguments, keywords)
        address, count = handles.buffer_info() if handles else (None, 0)
        if results == 1:
            return self._reference(self._call(self.runtime, made, payload, len(payload), address, count, None))
        several = library.array_of(ctypes.c_void_p, results)()
        if not self._call(self.runtime, made, payload, len(payload), address, count, several):
            raise self.library.failure()
        made = [ObjectRef(handle, self) for handle in several]
        for place, reference in enumerate(made):
            reference.place = place  # Of those that have none it is 0.
        return made

    def create(self, made, arguments, keywords, class_name):
        """Makes an actor: its id, and a reference that keeps it."""
        payload, handles, _kept = self._encode_arguments(arguments, keywords)
        address, count = handles.buffer_info() if handles else (None, 0)
        actor = library.Id()
        handle = self._create(self.runtime, made, payload, len(payload), address, count, ctypes.byref(actor))
        made = self._reference(handle)
        while len(self.made_actors) >= _MADE_ACTORS_MAX:
            self.made_actors.pop(next(iter(self.made_actors)), None)
        self.made_actors[bytes(actor)] = class_name
        return bytes(actor), made

    def stream(self, made, arguments, keywords):
        """Calls what gives its results one by one: the call's id, and the reference of its end."""
        payload, handles, _kept = self._encode_arguments(arguments, keywords)
        address, count = handles.buffer_info() if handles else (None, 0)
        call = library.Id()
        end = self._stream(self.runtime, made, payload, len(payload), address, count, ctypes.byref(call))
        return bytes(call), self._reference(end)

    def item(self, call, index):
        return self._reference(self.library.item(self.runtime, call, index))

    def take(self, call, count):
        """The first `count` items are held; DROPPED, LEFT: no more are wanted."""
        self.library.take(self.runtime, call, count)

    def _encode_arguments(self, arguments, keywords):
        """The arguments as bytes, the references among them, and what must live until they are passed on."""
        if not arguments and not keywords:
            return b"", None, None
        references, slots = [], []
        for i, value in enumerate(arguments):
            if type(value) is ObjectRef:
                references.append(value)
                slots.append(i)
        for name, value in keywords.items():
            if type(value) is ObjectRef:
                references.append(value)
                slots.append(name)
        if slots:
            arguments = [None if type(value) is ObjectRef else value for value in arguments]
            keywords = {name: None if type(value) is ObjectRef else value for name, value in keywords.items()}
        encoded = values.dumps([arguments, keywords, slots] if keywords or slots else arguments)
        if encoded.references or encoded.size() > INLINE_BYTES_MAX:
            references.insert(0, self.put_encoded(encoded))
            payload = BY_REFERENCE
        else:
            payload = encoded.joined()
        if not references:
            return payload, None, None
        if len(references) > _REFERENCES_MAX:
            raise ValueError(f"{len(slots)} arguments of a call are references, and {_REFERENCES_MAX - 1} may be: put them into a list")
        return payload, array.array("Q", [reference.handle for reference in references]), references

    def reserve(self, bundles, strategy, name):
        """What stands for a placement group of bundles, each a text as "cpu=1 gpu=1"."""
        texts = library.strings(bundles)
        return self._reference(self.library.reserve(self.runtime, texts, len(bundles), strategy, name.encode()))

    # ---- The rest.

    def ask(self, question):
        """What the driver's node says of itself, "status" or "timeline", or this process's of the cluster, "nodes" or "names"; as JSON has it."""
        process = self.place.process if question in ("nodes", "names") and self.place is not None else self.driver
        if process is None:
            raise exceptions.RaySystemError(f"'{question}' is asked of the program's own process, which runs on another machine")
        pieces = []
        take = library.Take(lambda address, size: pieces.append(ctypes.string_at(address, size)))
        if self.library.ask(str(process).encode(), question.encode(), _ASK_SECONDS, take) != 0:
            raise self.library.failure()
        return json.loads(b"".join(pieces))

    def cancel(self, reference, force, recursive=True):
        if self.library.cancel(self.runtime, reference.handle, int(force), int(recursive)) != 0:
            raise self.library.failure()

    def kill(self, actor, may_restart, kept=None):
        """`kept`: the reference on what stands for it; needed of another program's."""
        if self.library.kill(self.runtime, actor, kept and kept.handle, int(may_restart)) != 0:
            raise self.library.failure()

    def find(self, name):
        """The id of the living actor of that name, a reference that keeps it and whether it is another program's; or None."""
        actor, of_another = library.Id(), ctypes.c_int32()
        handle = self.library.find(self.runtime, name.encode(), ctypes.byref(actor), ctypes.byref(of_another))
        if not handle and self.library.error_code() == library.NOT_FOUND:
            return None
        return Named(bytes(actor), self._reference(handle), bool(of_another.value))


def _make_as_caller(make, *arguments):
    call = current.running.get()
    return make(*arguments) if call is None or call.runner is None else call.make(make, *arguments)


class Fetched:
    """What a get gave. If one of several has failed it has no more than that failure."""

    def __init__(self, session, batch, count):
        self._session, self._batch = session, batch
        self._entries = list(_ENTRY.iter_unpack(ctypes.string_at(batch, _ENTRY.size * count)))
        self.has_failed = any(failed for _, _, failed, _ in self._entries)

    def value(self, index):
        """Raises the failure; each once."""
        return self._session.read_value(self._batch, index, *self._entries[index])

    def __del__(self):
        self._session.library.drop_batch(self._batch)


def _loads(data, index):
    """Value `index` of those that were asked for."""
    try:
        return checked(values.loads(data))
    except exceptions.RayError:
        raise
    except Exception as error:
        raise exceptions.RaySystemError(f"value {index} of those that get was asked for cannot be unpickled: {error!r}") from error


def checked(value):
    """A value that was read, unless it stands for an error."""
    if type(value) is exceptions.Failed:
        raise value.error(values.loads)
    return value


def c_value(encoded):
    """(what must stay, the arguments by which the library takes a value)."""
    head, buffers, references = encoded.head, encoded.buffers, encoded.references
    table, handles = None, None
    if buffers:
        table = library.array_of(library.Bytes, len(buffers))(*[(values.address_of(buffer), buffer.nbytes) for buffer in buffers])
    if references:
        handles = library.array_of(ctypes.c_void_p, len(references))(*[reference.handle for reference in references])
    return encoded, (head, len(head), table, len(buffers), handles, len(references))
