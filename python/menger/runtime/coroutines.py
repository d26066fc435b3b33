"""Calls of an actor with coroutines: all of its methods run on one loop, as in Ray."""

import asyncio
import threading
import types

_LOOK_SECONDS = 60  # No wait is endless; only a wake ends one.


class _Call:
    __slots__ = ("arguments", "error", "finished", "keywords", "method", "value", "wake")

    def __init__(self, method, arguments, keywords):
        self.method, self.arguments, self.keywords = method, arguments, keywords
        self.value = self.error = self.wake = None
        self.finished = False

    async def run(self, finish):
        try:
            value = self.method(*self.arguments, **self.keywords)
            self.value = await value if type(value) is types.CoroutineType else value
        except (Exception, asyncio.CancelledError) as error:
            self.error = error
        finish(self)


class Coroutines:
    """The loop has no thread of its own: one of those that wait for calls runs it for all, so a call that is alone wakes nobody."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._runner = None  # The call whose thread runs the loop, or is about to. Under the lock.
        self._others = {}  # Calls whose threads wait, in order. Under the lock.
        self._tasks = set()  # The loop itself holds them weakly.

    def run(self, method, arguments, keywords, about_to_wait):
        """Any thread. Calls that come one after the other begin in that order."""
        call = _Call(method, arguments, keywords)
        with self._lock:
            if self._runner is None:  # So there is no other call.
                self._runner = call
                self._start(call)
            else:
                call.wake = threading.Event()
                self._others[call] = None
                self._loop.call_soon_threadsafe(self._start, call)
        if call.wake is not None:
            about_to_wait()
            while not call.wake.wait(_LOOK_SECONDS):
                pass
        if not call.finished:
            self._run_until_finished()
        if call.error is not None:
            raise call.error
        return call.value

    def _start(self, call):
        task = self._loop.create_task(call.run(self._finish))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _finish(self, call):
        with self._lock:
            call.finished = True
            self._others.pop(call, None)
            if self._runner is call:
                self._loop.stop()
            else:
                call.wake.set()

    def _run_until_finished(self):
        self._loop.run_forever()
        with self._lock:
            self._runner = next(iter(self._others), None)
            if self._runner is not None:
                del self._others[self._runner]
                self._runner.wake.set()
