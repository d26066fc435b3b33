"""Futures of references, for those who do not wait themselves: one thread of a session waits for all.

It reads nothing that belongs to a loop: what is ready is handed to each loop in one piece, and unpickled there. Otherwise the two
threads would take the interpreter's lock from each other several times a value.
"""

import array
import concurrent.futures
import contextlib
import queue
import threading

from menger.runtime import exceptions

_LENDING_AFTER = 20  # Slices.
_LENDING_SECONDS = 1.0
_SLICES_SECONDS = (0.0005, 0.001, 0.002, 0.005)  # Longer and longer while nothing is ready.


def future(reference, session):
    """A concurrent.futures.Future of its value."""
    made = concurrent.futures.Future()
    _watch(session, _Watched(reference, made, None, True))
    return made


def future_of_loop(reference, session, loop, with_value=True):
    """An asyncio.Future of its value, or of nothing: done once the reference is ready."""
    made = loop.create_future()
    _watch(session, _Watched(reference, made, loop, with_value))
    return made


def _watch(session, watched):
    if session.runtime is None:
        watched.future.set_exception(_ended())
        return
    if session.waiter is None:
        session.waiter = Waiter(session)
    session.waiter.queue.put(watched)


class _Watched:
    """Somebody's future, and what it is of."""

    __slots__ = ("error", "fetched", "future", "index", "loop", "reference", "with_value")

    def __init__(self, reference, future, loop, with_value):
        self.reference, self.future, self.loop, self.with_value = reference, future, loop, with_value
        self.fetched, self.index, self.error = None, 0, None

    def settle(self):
        """On the thread of its loop, if it has one."""
        future = self.future
        if future.cancelled() if self.loop is not None else not future.set_running_or_notify_cancel():
            return
        try:
            if self.error is not None:
                raise self.error
            future.set_result(self.fetched.value(self.index) if self.with_value else None)
        except BaseException as error:
            future.set_exception(error)


def _settle_all(watched):
    for each in watched:
        each.settle()


class Waiter:
    def __init__(self, session):
        self.queue, self._session = queue.SimpleQueue(), session
        self._stopping, self._lending = False, threading.Lock()
        self._thread = threading.Thread(target=self._run, name="menger futures", daemon=True)
        self._thread.start()

    def stop(self):
        """Ends it; whoever waits for its futures is told."""
        self._stopping = True
        self.queue.put(None)
        self._thread.join()

    def _run(self):
        waiting, idle, slices = [], 0, 0
        while True:
            waiting += self._arrived(block=not waiting)
            if self._stopping:
                return _fail(waiting, _ended())
            places = {}  # Several may wait for the same.
            for each in waiting:
                places.setdefault(each.reference.handle, len(places))
            handles = array.array("Q", places)
            try:
                flags = self._session.wait(handles, len(handles), 0)
                if not any(flags):
                    self._session.wait(handles, 1, _SLICES_SECONDS[idle])
                    idle, slices = min(idle + 1, len(_SLICES_SECONDS) - 1), slices + 1
                    if slices % _LENDING_AFTER == 0:
                        self._lend(handles, [each.reference for each in waiting])
                    continue
            except Exception as error:
                _fail(waiting, error)
                waiting = []
                continue
            except KeyboardInterrupt:  # The call was cancelled, and with it all that it waits for.
                _fail(waiting, exceptions.TaskCancelledError())
                waiting = []
                continue
            idle = slices = 0
            ready = [each for each in waiting if flags[places[each.reference.handle]]]
            waiting = [each for each in waiting if not flags[places[each.reference.handle]]]
            self._fetch([each for each in ready if each.with_value])
            _hand_over(ready)
            del each, ready, places, handles  # Nothing keeps what has been told while this waits for more.

    def _lend(self, handles, references):
        """The CPUs of a task's call are lent for a wait that takes long, and those above are short, since others may be added
        at any time: so another thread waits for the same at length.
        """
        if not self._session.in_worker or self._session.actor is not None or not self._lending.acquire(blocking=False):
            return

        def wait():
            with contextlib.suppress(BaseException):  # Whatever it is, those who wait learn it above.
                self._session.wait(handles, 1, _LENDING_SECONDS)
            del references[:]  # Until here they keep what the handles name.
            self._lending.release()

        threading.Thread(target=wait, name="menger lending", daemon=True).start()

    def _arrived(self, block):
        arrived = [self.queue.get()] if block else []
        while not self.queue.empty():
            arrived.append(self.queue.get())
        return [one for one in arrived if one is not None]  # None only wakes.

    def _fetch(self, ready):
        """All together, unless one of them has failed: then a fetch says no more than that."""
        if not ready:
            return
        try:
            fetched = self._session.fetch([each.reference for each in ready])
            if fetched.has_failed and len(ready) > 1:
                for each in ready:
                    self._fetch([each])
                return
            for index, each in enumerate(ready):
                each.fetched, each.index = fetched, index
        except Exception as error:
            for each in ready:
                each.error = error


def _hand_over(watched):
    loops = {}
    for each in watched:
        loops.setdefault(each.loop, []).append(each)
    for loop, of_loop in loops.items():
        if loop is None:
            _settle_all(of_loop)
            continue
        try:
            loop.call_soon_threadsafe(_settle_all, of_loop)
        except RuntimeError:  # It is closed: nobody waits.
            pass


def _ended():
    return exceptions.NotOfThisRuntimeError("the runtime that this is of was shut down")


def _fail(waiting, error):
    for each in waiting:
        each.error = error
    _hand_over(waiting)
