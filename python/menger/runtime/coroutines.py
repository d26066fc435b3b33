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
        except BaseException as error:  # Whatever it is, it is this call's, not that of whoever runs the loop.
            self.error = error
        finish(self)


class Coroutines:
    """The loop has no thread of its own: one of those that wait for calls runs it for all, so a call that is alone wakes nobody."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._runner = None  # The call whose thread runs the loop, or is about to. Under the lock.
        self._others = {}  # Calls whose threads wait, in order. Under the lock.
        self._tasks = set()  # Of calls; the loop itself holds them weakly.
        self._left = set()  # What calls have started and is not done.
        self._loop.set_task_factory(self._make_task)
        self._keeps = False  # Somebody runs the loop for tasks that calls have left.

    def run(self, method, arguments, keywords, begun):
        """Any thread. Calls start in the order in which this is called; `begun` is told, once one has, whether its thread waits."""
        call = _Call(method, arguments, keywords)
        with self._lock:
            if self._runner is None:  # So there is no other call.
                self._runner = call
                self._start(call)
            else:
                call.wake = threading.Event()
                self._others[call] = None
                self._loop.call_soon_threadsafe(self._start, call)
        begun(call.wake is not None)
        if call.wake is not None:
            while not call.wake.wait(_LOOK_SECONDS):
                pass
        if not call.finished:
            self._run_until_finished(call)
        if call.error is not None:
            raise call.error
        return call.value

    def _start(self, call):
        task = asyncio.Task(call.run(self._finish), loop=self._loop)
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._forget(task, call))

    def _forget(self, task, call):
        self._tasks.discard(task)
        if not call.finished:  # It was cancelled before it began.
            call.error = asyncio.CancelledError()
            self._finish(call)

    def _finish(self, call):
        if self._left and not self._keeps:
            self._keeps = True
            threading.Thread(target=self.run, args=(self._await_left, (), {}, _nothing), name="menger loop", daemon=True).start()
        with self._lock:
            call.finished = True
            self._others.pop(call, None)
            if self._runner is call:
                self._loop.stop()
            else:
                call.wake.set()

    def _make_task(self, loop, coroutine, **options):
        """What asyncio makes of a coroutine that a call starts."""
        task = asyncio.Task(coroutine, loop=loop, **options)
        self._left.add(task)
        task.add_done_callback(self._left.discard)
        return task

    async def _await_left(self):
        while self._left:
            await asyncio.wait(self._left)
        self._keeps = False

    def _run_until_finished(self, call):
        try:
            while not call.finished:
                try:
                    self._loop.run_forever()
                except KeyboardInterrupt:  # Of a task that some call has left.
                    pass
        finally:
            with self._lock:
                self._runner = next(iter(self._others), None)
                if self._runner is not None:
                    del self._others[self._runner]
                    self._runner.wake.set()


def _nothing(_waits):
    pass
