"""Calls of an actor with coroutines: all of its methods run on one loop, as in Ray."""

import asyncio
import contextvars
import inspect
import threading
import types

from menger.runtime.actor import ActorExit

_LOOK_SECONDS = 60  # No wait is endless; only a wake ends one.


class _Call:
    __slots__ = ("arguments", "context", "error", "finished", "keywords", "method", "task", "value", "wake")

    def __init__(self, method, arguments, keywords):
        self.method, self.arguments, self.keywords = method, arguments, keywords
        self.context = contextvars.copy_context()  # Says which call that is.
        self.value = self.error = self.wake = self.task = None
        self.finished = False

    async def run(self, finish):
        try:
            value = self.method(*self.arguments, **self.keywords)
            self.value = await value if type(value) is types.CoroutineType else value
        except BaseException as error:  # Whatever it is, it is this call's, not that of whoever runs the loop.
            self.error = error
        finish(self)


def constructor(target):
    """What makes an instance of a class, on the loop; its __init__ may be a coroutine."""
    if not inspect.iscoroutinefunction(target.__init__):
        return target

    async def construct(*arguments, **keywords):
        instance = target.__new__(target, *arguments, **keywords)
        await instance.__init__(*arguments, **keywords)
        return instance

    return construct


class Coroutines:
    """The loop has no thread of its own: one of those that wait for calls runs it for all, so a call that is alone wakes nobody."""

    def __init__(self, on_exit):
        """`on_exit` is called where what a call has left wants the actor to end."""
        self._on_exit = on_exit
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._runner = None  # The call whose thread runs the loop, or is about to. Under the lock.
        self._others = {}  # Calls whose threads wait, in order. Under the lock.
        self._to_start = []  # Those of them that have not begun, in order. Under the lock.
        self._of_threads = {}  # Those of above by who waits for them. Under the lock.
        self._tasks = set()  # Of calls; the loop itself holds them weakly.
        self._left = set()  # What calls have started and is not done.
        self._loop.set_task_factory(self._make_task)
        self._keeps = False  # A thread of ours runs the loop for what calls have left.

    def run(self, method, arguments, keywords, begun):
        """Any thread. Calls start in the order in which this is called; `begun` is told, once one has, whether its thread waits."""
        call, thread = _Call(method, arguments, keywords), threading.get_ident()
        with self._lock:
            self._of_threads[thread] = call
            if self._runner is None:  # So there is no other call.
                self._runner = call
                self._start(call)
            else:
                call.wake = threading.Lock()  # Held until it is woken: an Event makes a lock for each wait, under one of its own.
                call.wake.acquire()
                self._others[call] = None
                self._to_start.append(call)
                if len(self._to_start) == 1:  # For the others the loop has been woken.
                    self._loop.call_soon_threadsafe(self._start_all)
        begun(call.wake is not None)
        if call.wake is not None:
            while not call.wake.acquire(timeout=_LOOK_SECONDS):
                pass
        if not call.finished:
            self._run_until_finished(call)
        with self._lock:
            del self._of_threads[thread]
        if call.error is not None:
            try:
                raise call.error
            finally:
                call.error = None  # Whose traceback has this frame, which has the call: a circle.
        return call.value

    def cancel(self, thread):
        """Cancels the call for which that thread waits, if it does."""
        with self._lock:
            call = self._of_threads.get(thread)
        if call is not None and call.task is not None:
            self._loop.call_soon_threadsafe(call.task.cancel)

    def _start_all(self):
        with self._lock:
            calls, self._to_start = self._to_start, []
        for call in calls:
            self._start(call)

    def _start(self, call):
        call.task = task = asyncio.Task(call.run(self._finish), loop=self._loop, context=call.context)
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._forget(task, call))

    def _forget(self, task, call):
        self._tasks.discard(task)
        if not call.finished:  # It was cancelled before it began.
            call.error = asyncio.CancelledError()
            self._finish(call)

    def _finish(self, call):
        with self._lock:
            call.finished = True
            self._others.pop(call, None)
            if self._runner is call:
                self._loop.stop()
            else:
                call.wake.release()

    def _make_task(self, loop, coroutine, **options):
        """What asyncio makes of a coroutine that a call starts."""
        task = asyncio.Task(coroutine, loop=loop, **options)
        self._left.add(task)
        task.add_done_callback(self._forget_left)
        return task

    def _forget_left(self, task):
        self._left.discard(task)
        if not task.cancelled() and isinstance(getattr(task, "_exception", None), ActorExit):
            self._on_exit()

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
                    self._runner.wake.release()
                elif self._left and not self._keeps:
                    self._keep_running()

    def _keep_running(self):
        """For tasks that calls have left, where no call runs the loop for them: to start a thread takes as long as several short calls."""
        self._keeps = True
        threading.Thread(target=self.run, args=(self._await_left, (), {}, _nothing), name="menger loop", daemon=True).start()


class Pump:
    """An async generator, item by item. All of it runs in one task, as it would in a program's own loop: limits of time and
    the like may begin before a yield and end after it.
    """

    def __init__(self, generator, end):
        """`end`: what comes after the last item."""
        self._generator, self._end = generator, end
        self._task = self._answer = None  # The answer is there while somebody waits for it.
        self._wanted = asyncio.Event()

    async def next(self):
        loop = asyncio.get_running_loop()
        if self._task is None:
            self._task = asyncio.Task(self._run(), loop=loop)  # By itself: it does nothing that somebody must wait for.
        self._answer = loop.create_future()
        self._wanted.set()
        try:
            return await self._answer
        except asyncio.CancelledError:
            if self._task.done():
                raise
            self._answer = loop.create_future()
            self._task.cancel()
            return await self._answer
        finally:
            self._answer = None  # What it raised has a traceback that leads back here.

    async def close(self):
        """What is left of it does not happen, but for its ends."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self):
        try:
            await self._is_wanted()
            async for item in self._generator:
                self._answer.set_result(item)
                await self._is_wanted()
            self._answer.set_result(self._end)
        except BaseException as error:  # Whatever it is, it is the call's.
            if self._answer is None:
                await self._generator.aclose()
            elif not self._answer.done():
                self._answer.set_exception(error)

    async def _is_wanted(self):
        await self._wanted.wait()
        self._wanted.clear()


def _nothing(_waits):
    pass
