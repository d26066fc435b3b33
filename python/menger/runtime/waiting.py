"""Futures of references, for those who do not wait themselves: one thread of a session waits for all."""

import array
import concurrent.futures
import queue
import threading

from menger.runtime import exceptions

_SLICES_SECONDS = (0.0, 0.0005, 0.001, 0.002, 0.005)  # Longer and longer while nothing is ready.


def future(reference, session):
    made = concurrent.futures.Future()
    if session.runtime is None:
        made.set_exception(_ended())
        return made
    if session.waiter is None:
        session.waiter = Waiter(session)
    session.waiter.queue.put((reference, made))
    return made


class Waiter:
    def __init__(self, session):
        self.queue, self._session = queue.SimpleQueue(), session
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="menger futures", daemon=True)
        self._thread.start()

    def stop(self):
        """Ends it; whoever waits for its futures is told."""
        self._stopping = True
        self.queue.put(None)
        self._thread.join()

    def _run(self):
        waiting, idle = [], 0
        while True:
            waiting += self._arrived(block=not waiting)
            if self._stopping:
                return _fail(waiting, _ended())
            handles = array.array("Q", [reference.handle for reference, _ in waiting])
            try:
                ready = self._session.wait(handles, 1, _SLICES_SECONDS[idle])
                if any(ready):
                    ready = self._session.wait(handles, len(handles), 0)
            except Exception as error:
                _fail(waiting, error)
                waiting = []
                continue
            idle = 0 if any(ready) else min(idle + 1, len(_SLICES_SECONDS) - 1)
            for (reference, made), done in zip(waiting, ready):
                if done:
                    self._settle(reference, made)
            waiting = [pair for pair, done in zip(waiting, ready) if not done]

    def _arrived(self, block):
        arrived = [self.queue.get()] if block else []
        while not self.queue.empty():
            arrived.append(self.queue.get())
        return [pair for pair in arrived if pair is not None]  # None only wakes.

    def _settle(self, reference, made):
        if not made.set_running_or_notify_cancel():
            return
        try:
            made.set_result(self._session.get([reference])[0])
        except BaseException as error:
            made.set_exception(error)


def _ended():
    return exceptions.RaySystemError("the runtime that this is of was shut down")


def _fail(waiting, error):
    for _, made in waiting:
        if made.set_running_or_notify_cancel():
            made.set_exception(error)
