"""A worker process, as the runtime starts it: `python -m menger.runtime.worker`, never by hand."""

import atexit
import contextlib
import ctypes
import faulthandler
import functools
import itertools
import os
import signal
import struct
import sys
import threading
import time
import traceback
import types

from menger.runtime import actor as actors
from menger.runtime import (
    accelerators,
    current,
    definitions,
    driver,
    environments,
    exceptions,
    failures,
    frames,
    generators,
    instances,
    library,
    members,
    output,
    remoting,
    runtime_context,
    session,
    values,
)
from menger.runtime.util.placement_group import capture

_GENERATORS = (types.GeneratorType, types.AsyncGeneratorType)
_DEFINITIONS_MAX = 10_000
_SURROUNDINGS = {"environment", "devices", "captures", "calls"}  # Told of tasks before which something is changed, and after which it is as before.
_SHORT_BYTES_MAX = 16 * 1024  # Of a value that needs no room in the store.
_LOOK_SECONDS = 0.1  # Between two looks at whether the call was cancelled.


class Worker:
    """Does the calls that the library hands over: on the main thread, but for those of an actor with max_concurrency."""

    def __init__(self, functions):
        self._library = functions
        self._session = None
        self._definitions = {}  # (what was loaded, what else it is told, its reference) by what the call says it is.
        self._actors, self._made = {}, 0
        self._methods = {}  # What calls of a method say, read once: by the actor's class and that.
        self._threads = 1  # For numerical libraries.
        self._held = contextlib.ExitStack()
        self._groups = None  # Of the calls of an actor with concurrency_groups.
        self._loop = None
        self._coroutines = None  # Of an actor that has some.
        self._main = threading.get_ident()
        self._of_thread = threading.local()
        self.name = "worker"
        self.broken = None  # Why it can do nothing.
        self.outputs = ()
        self._calls, self._running = 0, False
        self._told = 0  # The last call that was told that it is cancelled.
        self._watched = {}  # The threads that wait for calls which others run, by these.
        self._watching = threading.Lock()
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
        call = runtime_context.Call(self._library, frame)
        token = runtime_context.running.set(call)
        try:
            if main:
                self._calls += 1
            try:
                self._do(call, frame, kind, actor, table, count, results, shared, main)
            finally:
                if main:
                    self._running = False
                for each in self.outputs:
                    each.end_line()
        except actors.ActorExit:
            self._end_actor()
        except SystemExit as error:
            if self._session.actor is not None and _status(error) == 0:
                self._end_actor()  # It means to end; to be made again is for those that did not.
            _exit(error)
        except BaseException as error:
            self._fail(call, frame, error, main)
        call.end()
        runtime_context.running.reset(token)
        if shared:
            frames.pin_what_is_held(self._library, self._session, frame, shared)

    def _do(self, call, frame, kind, actor, table, count, results, shared, main):
        if self.broken is not None:
            raise exceptions.RuntimeEnvSetupError(self.broken)
        flat = struct.unpack(f"={2 * count}Q", ctypes.string_at(table, 16 * count))
        prefix = ctypes.string_at(flat[0], flat[1])
        # The arguments are read once it is known what is called: where one cannot be, the error says of which call it is.
        if kind == library.METHOD:
            method, group = self._method(call, actor, prefix)
            arguments, keywords = frames.arguments(flat, shared)
            if main:
                value = method(*arguments, **keywords)
            else:
                value = self._do_among_others(call, frame, method, group, arguments, keywords)
        else:
            target, told = self._definition(prefix)
            self.name = target.__name__
            call.function, call.told, call.retried = target, told, told.get("retried")
            if told.get("threads", 1) != self._threads:
                self._threads = told.get("threads", 1)
                environments.set_threads(self._threads)
            if kind == library.CONSTRUCT:
                self._set_actor(call, target, told)
            arguments, keywords = frames.arguments(flat, shared)
            if main:  # Only now: a module that is half imported would be so for later calls.
                self._running = True
            if kind == library.CONSTRUCT:
                value = self._keep(frame, self._construct(target, arguments, keywords, told))
            elif "surroundings" in told:
                with self._surroundings(call, told):
                    value = self._finish(call, target(*arguments, **keywords), main)
            else:
                value = target(*arguments, **keywords)
        if type(value) is types.CoroutineType:
            value = self._await(value, main)
        if results == 0:
            self._emit(call, frame, value, main)
        elif call.told.get("dynamic"):
            if not _is_generator(value) and "surroundings" not in call.told:
                raise TypeError(f"a call with num_returns='dynamic' gave {type(value).__name__}; it must be a generator")
            items = self._items_and_error(call, value, main)
            self._give_one(frame, 0, generators.DynamicObjectRefGenerator(map(self._session.put, items)))
        else:
            self._give(call, frame, value, results, main)

    @contextlib.contextmanager
    def _surroundings(self, call, told):
        """What a task needs changed while it runs, or counted."""
        if "calls" in told:
            told["calls"] -= 1
            if told["calls"] == 0:
                self._library.leave(self._session.runtime)
        group = call.about().group.hex() if "bundles" in told else ""
        with environments.applied(told.get("environment", {})), accelerators.held(told.get("devices", {}), group) as call.devices:
            session = self._session_within(told)
            current.set_session(session)
            try:
                yield
            finally:
                current.set_session(self._session)
                session.leave()

    def _session_within(self, told):
        """For what is called meanwhile."""
        return self._session.within(capture() if "captures" in told else None, told.get("environment", {}))

    def _finish(self, call, value, main):
        """What a call has still to do, of which its value knows."""
        if type(value) is types.CoroutineType:
            return self._await(value, main)
        return list(self._items(call, value, main)) if _is_generator(value) else value

    def _give(self, call, frame, value, results, main):
        generator = _is_generator(value)
        if results == 1 and not generator:
            return self._give_one(frame, 0, value)
        if generator:
            several = list(itertools.islice(self._items_and_error(call, value, main), results))
            if several and type(several[-1]) is exceptions.Failed:
                several += several[-1:] * (results - len(several))
        else:
            several = list(value)
        if len(several) != results:
            raise ValueError(f"the call has num_returns={results} and gave {len(several)} values")
        for i, each in enumerate(several):
            self._give_one(frame, i, each)
        return None

    def _give_one(self, frame, index, value):
        encoded = value if type(value) is values.Encoded else values.dumps(value)
        kept, packed = session.c_value(encoded)
        give = self._library.frame_short_result if encoded.size() <= _SHORT_BYTES_MAX else self._library.frame_result
        if give(frame, index, *packed) != 0:
            raise self._library.failure()
        del kept

    def _fail(self, call, frame, error, main):
        if main:
            self._running = False
        text, cause = failures.describe(error, self._place(call))
        _held, packed = definitions.pack_bytes(failures.pack(cause))
        final = call.retried is not None and not issubclass(type(error), call.retried)
        self._library.frame_fail(
            frame, type(cause).__name__.encode(), text.replace("\0", "\\0").encode(errors="replace"), ctypes.byref(packed), int(final)
        )

    def _place(self, call):
        """Which call raises, for the text of its error."""
        session, name = self._session, getattr(call.function, "__name__", self.name)
        actor = session.actor if session is not None else None
        if actor is None:
            return failures.place(name, None, "")
        instance = next(iter(self._actors.values()), None)
        method = "__init__" if instance is None else name
        return failures.place(f"{actor.description.name}.{method}", actor, actor.description.name if instance is None else instances.shown(instance))

    # ---- Results that come one by one.

    def _emit(self, call, frame, value, main):
        if not _is_generator(value) and not isinstance(value, list):
            raise TypeError(f"a call with num_returns='streaming' gave {type(value).__name__}; it must be a generator")
        if call.told.get("waits_for_reader") and self._session.actor.has_coroutines:
            raise ValueError("_generator_backpressure_num_objects is not supported in an actor with coroutines, as in Ray")
        count = 0
        for each in self._items(call, value, main):
            kept, packed = session.c_value(values.dumps(each))
            if self._library.frame_emit(frame, *packed) != 0:
                raise self._library.failure()
            del kept
            count += 1
        self._give_one(frame, 0, count)

    def _items(self, call, value, main):
        """What a generator yields; each is asked for by whoever runs the call."""
        if type(value) is types.AsyncGeneratorType:
            from menger.runtime import coroutines

            pump = coroutines.Pump(value, _END)
            step, close = pump.next, pump.close
        elif call.runner is not None and _is_generator(value):
            step, close = functools.partial(next, value, _END), value.close
        else:
            yield from value
            return
        try:
            while (each := self._step(call, step, main)) is not _END:
                yield each
        finally:
            self._step(call, close, main)

    def _step(self, call, step, main):
        return self._await(step(), main) if call.runner is None else call.runner.run(step, (), {}, _ignore)

    def _items_and_error(self, call, value, main):
        """The same; if it raises, the last item stands for the error, unless the call shall be run again for that."""
        try:
            yield from self._items(call, value, main)
        except Exception as error:
            if call.retried is not None and issubclass(type(error), call.retried):
                raise
            text, cause = failures.describe(error, self._place(call))
            yield exceptions.Failed(text, failures.pack(cause))

    # ---- What is called.

    def _definition(self, prefix):
        found = self._definitions.get(prefix)
        if found is None:
            if len(self._definitions) >= _DEFINITIONS_MAX:
                self._definitions.clear()
            reference = self._session.adopt(prefix[: library.ID_BYTES])
            target = definitions.load_definition(reference, self._session)
            more = prefix[library.ID_BYTES :]
            told = values.loads(more) if more else {}
            if not _SURROUNDINGS.isdisjoint(told):
                told["surroundings"] = True
            found = self._definitions[prefix] = (target, told, reference)
        return found[:2]

    def _method(self, call, actor, prefix):
        """The method, and the name of its concurrency group."""
        instance = self._actors[actor]
        kind = type(instance)
        name, group, call.told, call.retried = self._methods.get((kind, prefix)) or self._learn_method(kind, prefix)
        if name in instances.OF_ALL_ACTORS:
            return functools.partial(instances.OF_ALL_ACTORS[name], instance), ""
        method = getattr(instance, name)
        if not callable(method):
            method = getattr(kind, name).__get__(instance)  # The actor has an attribute of the method's name.
        call.function = method
        return method, group

    def _learn_method(self, kind, prefix):
        name, group, told, retried = actors.split_prefix(prefix)
        if retried is None:
            declared = actors.declared_options(getattr(kind, name, None)).get("retry_exceptions")
            retried = tuple(declared) if isinstance(declared, (list, tuple)) else None
        if len(self._methods) >= _DEFINITIONS_MAX:
            self._methods.clear()
        found = self._methods[kind, prefix] = (name, group, told, retried)
        return found

    # ---- Actors.

    def _set_actor(self, call, target, told):
        """This process is the actor's from now on."""
        self._library.show_construction(target.__name__.encode())
        about = call.about()
        self._session.actor = runtime_context.Actor(about, told, actors.describe(target))
        self._session.actor.has_coroutines = actors.has_coroutines(target)
        if "environment" in told:
            environments.apply(told["environment"])
        # For as long as the process lives.
        if not _SURROUNDINGS.isdisjoint(told):
            self._session = self._session_within(told)
            current.set_session(self._session)
        held = accelerators.held(told.get("devices", {}), about.group.hex() if "bundles" in told else "")
        self._session.actor.devices = self._held.enter_context(held)

    def _construct(self, target, arguments, keywords, told):
        """The actor itself. Of one with coroutines the constructor runs on the loop, too."""
        make_loop = None
        if self._session.actor.has_coroutines:
            from menger.runtime import coroutines  # Takes 20 ms, with asyncio.

            make_loop = functools.partial(coroutines.Coroutines, self._end_actor)
        if "groups" in told:
            from menger.runtime import groups  # Likewise.

            self._groups = groups.Groups(told["groups"], told["concurrency"], make_loop)
        if make_loop is not None or self._groups is not None:
            self._session.make_calls_of_coroutines()
        if make_loop is None:
            return target(*arguments, **keywords)
        self._coroutines = make_loop() if self._groups is None else self._groups.usual
        return self._coroutines.run(coroutines.constructor(target), arguments, keywords, _ignore)

    def _keep(self, frame, instance):
        self._made += 1
        self._actors[self._made] = instance
        self._library.frame_actor(frame, self._made)
        if type(instance).__repr__ is not object.__repr__:
            self.name = instances.shown(instance)
        return self._session.actor.description

    def _drop_actor(self, actor):
        """Nobody refers to it any longer."""
        instances.shut_down(self._actors.pop(actor, None))

    def _end_actor(self):
        """The actor ends of its own will: what it has given before counts, and it is not made again."""
        for instance in self._actors.values():
            instances.shut_down(instance)
        failures.shown(atexit._run_exitfuncs)
        for each in self.outputs:
            each.flush()
        self._session.kill(self._session.actor.identity, may_restart=False)
        while True:
            time.sleep(_LOOK_SECONDS)  # Until the node has ended this process.

    def _do_among_others(self, call, frame, method, group, arguments, keywords):
        """One of several calls of the actor at once."""
        call.runner = self._groups.of(method, group) if self._groups is not None else self._coroutines
        if call.runner is None:
            self._library.frame_begun(frame, 0)
            return method(*arguments, **keywords)
        self._library.frame_leave(frame)
        with self._watching:
            self._watched[call] = threading.get_ident()
        try:
            return call.runner.run(method, arguments, keywords, lambda waits: self._library.frame_begun(frame, waits))
        finally:
            with self._watching:
                self._watched.pop(call, None)

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
        name, namespace, process, node = (os.environ.pop(each, "") for each in driver.SESSION_VARIABLES)
        self._session = session.Session(self._library, runtime, name, namespace, process, in_worker=True)
        # What a call starts is no worker.
        self._session.place, is_near = members.of_worker(node, name, os.environ.pop("MENGER_WORKER", ""))
        self._session.driver = process if is_near else None
        current.set_session(self._session)
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
            if self._told != self._calls and self._shall_be_interrupted():
                self._told = self._calls
                signal.pthread_kill(main, signal.SIGINT)
            with self._watching:
                cancelled = [(call, thread) for call, thread in self._watched.items() if call.is_cancelled()]
                for call, thread in cancelled:  # Once: a coroutine may go on.
                    del self._watched[call]
                    call.runner.cancel(thread)

    def _cancelled_while_waiting(self):
        if threading.get_ident() == self._main:
            self._told = self._calls
        return KeyboardInterrupt()

    def _interrupted(self, _number, _frame):
        if self._shall_be_interrupted():
            raise KeyboardInterrupt

    def _shall_be_interrupted(self):
        """A task; a method asks whether it is cancelled, as in Ray."""
        return self._running and self._session.actor is None and self._library.is_cancelled(self._session.runtime)


_END = object()  # Of what a generator yields.


def _ignore(_waits):
    pass


def _is_generator(value):
    return type(value) in _GENERATORS


def _exit(error):
    traceback.clear_frames(error.__traceback__)  # What the call had is dropped, as at any other end of it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status(error))


def _status(error):
    """With which a SystemExit ends its process."""
    return int(error.code) if isinstance(error.code, int) else int(error.code is not None)


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
    environments.prefer_for_killing()
    accelerators.hide()
    if output.LOGGING_VARIABLE in os.environ:
        from menger.runtime import logging_config

        logging_config.apply_in_worker()
    worker.broken = environments.run_hook()
    status = worker.serve()
    if status < 0:
        os.write(2, f"{worker._library.failure()}\n".encode())
    else:
        failures.shown(atexit._run_exitfuncs)
    sys.stdout.flush()
    os._exit(max(status, 0) if status >= 0 else 1)


if __name__ == "__main__":
    # Not as __main__: definitions refer to the modules by their names.
    from menger.runtime import worker

    worker.main()
