"""A worker process, as the runtime starts it: `python -m menger.runtime.worker`, never by hand."""

import ctypes
import faulthandler
import os
import signal
import struct
import sys
import threading
import time
import traceback
import types
import weakref

from menger.runtime import current, driver, exceptions, library, output, remoting, session, values

_DEFINITIONS_MAX = 10_000
_FAILURE_BYTES_MAX = 256 * 1024
_LOOK_SECONDS = 0.1  # Between two looks at whether the call was cancelled.


class Worker:
    """Does the calls that the library hands over: on the main thread, but for those of an actor with max_concurrency."""

    def __init__(self, functions):
        self._library = functions
        self._session = None
        self._definitions = {}  # (what was loaded, what it is retried for, its reference) by what the call says it is.
        self._retried = None  # The exceptions for which the call that runs is run again; None: as it was made.
        self._actors, self._made = {}, 0
        self._loop = None
        self._coroutines = None  # Of an actor that has some.
        self._main = threading.get_ident()
        self._of_thread = threading.local()
        self.name = "worker"
        self.outputs = ()
        self._calls, self._running = 0, False
        self._told = 0  # The last call that was told that it is cancelled.
        functions.when_cancelled = self._cancelled_while_waiting
        self._hooks = library.WorkerHooks(library.DoCall(self._call), library.DropActor(self._drop_actor))

    def serve(self):
        return self._library.serve(ctypes.byref(self._hooks))

    # ---- Calls.

    def _call(self, runtime, frame, kind, actor, table, count, results):
        if self._session is None:
            self._begin(runtime)
        shared = []  # (memory that this call may hold on to, weakly, which of its values it is).
        main = threading.get_ident() == self._main
        if not main and not hasattr(self._of_thread, "stays"):
            # Python would make a thread of this one anew for each call, 8 us each, and forget what it had.
            ctypes.pythonapi.PyGILState_Ensure()
            self._of_thread.stays = True
        try:
            if main:
                self._calls += 1
                self._running = True
                self._retried = None
            try:
                self._do(frame, kind, actor, table, count, results, shared, main)
            finally:
                if main:
                    self._running = False
                for each in self.outputs:
                    each.end_line()
        except SystemExit as error:
            _exit(error)
        except BaseException as error:
            self._fail(frame, error, main)
        if shared:
            self._pin_what_is_held(frame, shared)

    def _do(self, frame, kind, actor, table, count, results, shared, main):
        flat = struct.unpack(f"={2 * count}Q", ctypes.string_at(table, 16 * count))
        prefix = ctypes.string_at(flat[0], flat[1])
        arguments, keywords = (), {}
        if count > 2 or flat[3]:
            arguments, keywords = self._arguments(flat, shared)
        if kind == library.METHOD:
            method = self._method(actor, prefix.decode())
            if main:
                value = method(*arguments, **keywords)
            else:
                value = self._do_among_others(frame, method, arguments, keywords)
        else:
            target, self._retried = self._definition(prefix)
            self.name = target.__name__
            value = target(*arguments, **keywords)
        if type(value) is types.CoroutineType:
            value = self._await(value, main)
        if kind == library.CONSTRUCT:
            value = self._keep(frame, target, value)
        self._give(frame, value, results)

    def _give(self, frame, value, results):
        if results == 1:
            return self._give_one(frame, 0, value)
        several = list(value)
        if len(several) != results:
            raise ValueError(f"the call has num_returns={results} and gave {len(several)} values")
        for i, each in enumerate(several):
            self._give_one(frame, i, each)
        return None

    def _give_one(self, frame, index, value):
        encoded = value if type(value) is values.Encoded else values.dumps(value)
        kept, packed = session.c_value(encoded)
        if self._library.frame_result(frame, index, *packed) != 0:
            raise self._library.failure()
        del kept

    def _fail(self, frame, error, main):
        if main:
            self._running = False
        text, cause = _describe(error)
        _held, packed = remoting.pack_bytes(_pack_exception(cause))
        final = main and self._retried is not None and not isinstance(error, self._retried)
        self._library.frame_fail(
            frame, type(cause).__name__.encode(), text.encode(errors="replace"), ctypes.byref(packed), int(final)
        )

    # ---- What is called, and with what.

    def _definition(self, prefix):
        found = self._definitions.get(prefix)
        if found is None:
            if len(self._definitions) >= _DEFINITIONS_MAX:
                self._definitions.clear()
            reference = self._session.adopt(prefix[: library.ID_BYTES])
            target = remoting.load_definition(reference, self._session)
            more = prefix[library.ID_BYTES :]
            found = self._definitions[prefix] = (target, values.loads(more) if more else None, reference)
        return found[:2]

    def _method(self, actor, name):
        instance = self._actors[actor]
        self.name = type(instance).__name__
        if name == "__ray_ready__":
            return lambda: True
        method = getattr(instance, name)
        if callable(method):
            return method
        return getattr(type(instance), name).__get__(instance)  # The actor has an attribute of the method's name.

    def _arguments(self, flat, shared):
        """(positional ones, those by name)."""
        payload, first = ctypes.string_at(flat[2], flat[3]), 2
        if payload == session.BY_REFERENCE:
            payload, first = self._view(flat, 2, shared), 3
        encoded = values.loads(payload)
        if type(encoded) is tuple:
            return encoded, {}
        arguments, keywords, slots = encoded if encoded is not None else ((), {}, ())
        for index, slot in enumerate(slots, first):
            value = values.loads(self._view(flat, index, shared))
            if type(slot) is int:
                arguments[slot] = value
            else:
                keywords[slot] = value
        return arguments, keywords

    def _view(self, flat, index, shared):
        """The bytes of a value; of a large one, those in shared memory."""
        address, size = flat[2 * index], flat[2 * index + 1]
        if size <= session.INLINE_BYTES_MAX:
            return ctypes.string_at(address, size)
        memory = values.shared_bytes(address, size)
        shared.append((weakref.ref(memory), index))
        return values.read_only(memory)

    def _pin_what_is_held(self, frame, shared):
        """Arguments in shared memory that the call has kept, as an actor may, are kept in their place."""
        for reference, index in shared:
            memory = reference()
            identity = library.Id()
            if memory is not None and self._library.frame_object(frame, index, ctypes.byref(identity)):
                memory.pin = self._session.pin(self._session.adopt(bytes(identity)))

    # ---- Actors.

    def _keep(self, frame, target, instance):
        self._made += 1
        self._actors[self._made] = instance
        if remoting.has_coroutines(target):
            from menger.runtime import coroutines  # Takes 20 ms, with asyncio.

            self._coroutines = coroutines.Coroutines()
        self._library.frame_actor(frame, self._made)
        return remoting.describe(target)

    def _drop_actor(self, actor):
        self._actors.pop(actor, None)

    def _do_among_others(self, frame, method, arguments, keywords):
        """One of several calls of the actor at once."""
        if self._coroutines is None:
            self._library.frame_begun(frame, 0)
            return method(*arguments, **keywords)
        self._library.frame_leave(frame)
        return self._coroutines.run(method, arguments, keywords, lambda waits: self._library.frame_begun(frame, waits))

    def _await(self, coroutine, main):
        import asyncio

        if not main:
            return asyncio.run(coroutine)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        return self._loop.run_until_complete(coroutine)

    # ---- Being cancelled.

    def _begin(self, runtime):
        self._session = session.Session(self._library, runtime, os.environ.pop(driver.NAME_VARIABLE, ""), in_worker=True)
        current.set_session(self._session)
        os.environ.pop("MENGER_WORKER", None)  # What a call starts is no worker.
        signal.signal(signal.SIGINT, self._interrupted)
        os.register_at_fork(after_in_child=self._begin_fork)
        threading.Thread(target=self._look, args=(threading.get_ident(),), name="menger look", daemon=True).start()

    def _begin_fork(self):
        """What a call forks is no worker."""
        self._running = False
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _look(self, main):
        while True:
            time.sleep(_LOOK_SECONDS)
            if self._running and self._told != self._calls and self._library.is_cancelled(self._session.runtime):
                self._told = self._calls
                signal.pthread_kill(main, signal.SIGINT)

    def _cancelled_while_waiting(self):
        if threading.get_ident() == self._main:
            self._told = self._calls
        return KeyboardInterrupt()

    def _interrupted(self, _number, _frame):
        if self._running and self._library.is_cancelled(self._session.runtime):
            raise KeyboardInterrupt


def _describe(error):
    """The text of an exception for whoever asks for the result, and what it was at first."""
    text = "".join(traceback.format_exception(type(error), error, _without_own(error.__traceback__)))
    if len(text) > _FAILURE_BYTES_MAX:
        text = text[: _FAILURE_BYTES_MAX // 2] + "\n...\n" + text[-_FAILURE_BYTES_MAX // 4 :]
    cause = error
    while isinstance(cause, exceptions.RayTaskError) and cause.cause is not None:
        cause = cause.cause
    return f"pid={os.getpid()}\n{text}", cause


def _pack_exception(cause):
    """An exception as bytes; of one that cannot travel, a RayError that says why."""
    try:
        packed = values.dumps(cause).joined()
        if len(packed) <= _FAILURE_BYTES_MAX:
            return packed
        why = f"it has {len(packed)} bytes, more than {_FAILURE_BYTES_MAX}"
    except Exception as error:
        why = repr(error)
    return values.dumps(exceptions.RayError(f"a {type(cause).__name__} isn't serializable: {why}")).joined()


def _without_own(trace):
    own = (__file__, os.path.join(os.path.dirname(__file__), "coroutines.py"))
    while trace is not None and trace.tb_frame.f_code.co_filename in own and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _exit(error):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))


def main():
    path = os.environ.pop(driver.PATH_VARIABLE, "")
    if path:
        sys.path[:] = path.split(os.pathsep)
    # What tasks print belongs to them; the module that cloudpickle knows as __main__ is the driver's.
    sys.modules["__main__"] = types.ModuleType("__main__")
    worker = Worker(library.load())
    sys.stdout = output.Output(1, "o", lambda: worker.name)
    sys.stderr = output.Output(2, "e", lambda: worker.name)
    worker.outputs = (sys.stdout, sys.stderr)
    faulthandler.enable(file=2)
    status = worker.serve()
    if status < 0:
        os.write(2, f"{worker._library.failure()}\n".encode())
    sys.stdout.flush()
    os._exit(max(status, 0) if status >= 0 else 1)


if __name__ == "__main__":
    # Not as __main__: definitions refer to the modules by their names.
    from menger.runtime import worker

    worker.main()
