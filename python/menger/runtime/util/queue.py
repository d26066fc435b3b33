"""A queue that tasks and actors share, as ray.util.queue: it lives in an actor."""

import asyncio
import queue

import menger.runtime as ray


class Empty(queue.Empty):
    """There is nothing in the queue."""


class Full(queue.Full):
    """There is no room in the queue."""


class Queue:
    """First in, first out. `maxsize`: items that it holds; 0: any number. Handles travel, all on the same queue."""

    def __init__(self, maxsize=0, actor_options=None):
        self.maxsize = maxsize
        self.actor = ray.remote(_QueueActor).options(**{"max_concurrency": 1000, **(actor_options or {})}).remote(maxsize)

    def __len__(self):
        return self.size()

    def size(self):
        return ray.get(self.actor.qsize.remote())

    def qsize(self):
        return self.size()

    def empty(self):
        return ray.get(self.actor.empty.remote())

    def full(self):
        return ray.get(self.actor.full.remote())

    def put(self, item, block=True, timeout=None):
        """Waits for room. Raises Full at once without `block`, or after `timeout` seconds."""
        ray.get(self.actor.put.remote(item, _seconds(block, timeout)))

    async def put_async(self, item, block=True, timeout=None):
        await self.actor.put.remote(item, _seconds(block, timeout))

    def get(self, block=True, timeout=None):
        """Waits for an item. Raises Empty at once without `block`, or after `timeout` seconds."""
        return ray.get(self.actor.get.remote(_seconds(block, timeout)))

    async def get_async(self, block=True, timeout=None):
        return await self.actor.get.remote(_seconds(block, timeout))

    def put_nowait(self, item):
        return self.put(item, block=False)

    def get_nowait(self):
        return self.get(block=False)

    def put_nowait_batch(self, items):
        """All of them, or none and Full."""
        ray.get(self.actor.put_batch.remote(list(items)))

    def get_nowait_batch(self, num_items):
        """As many, or none and Empty."""
        if not isinstance(num_items, int) or num_items < 0:
            raise ValueError(f"num_items is {num_items!r}; it must be a number and not negative")
        return ray.get(self.actor.get_batch.remote(num_items))

    def shutdown(self, force=False, grace_period_s=5):
        """Ends the actor: after the calls before, which have `grace_period_s` for it, or with `force` at once."""
        if self.actor is None:
            return
        if not force:
            ray.wait([self.actor.__ray_terminate__.remote()], timeout=grace_period_s)
        ray.kill(self.actor)
        self.actor = None


def _seconds(block, timeout):
    """How long an operation waits; None: for ever."""
    if not block:
        return 0
    if timeout is not None and timeout < 0:
        raise ValueError(f"timeout is {timeout}; it must not be negative")
    return timeout


class _QueueActor:
    def __init__(self, maxsize):
        self._maxsize = maxsize
        self._queue = asyncio.Queue(maxsize)

    def qsize(self):
        return self._queue.qsize()

    def empty(self):
        return self._queue.empty()

    def full(self):
        return self._queue.full()

    async def put(self, item, seconds):
        try:
            if seconds == 0:
                self._queue.put_nowait(item)
            else:
                await asyncio.wait_for(self._queue.put(item), seconds)
        except (asyncio.QueueFull, asyncio.TimeoutError):
            raise Full from None

    async def get(self, seconds):
        try:
            if seconds == 0:
                return self._queue.get_nowait()
            return await asyncio.wait_for(self._queue.get(), seconds)
        except (asyncio.QueueEmpty, asyncio.TimeoutError):
            raise Empty from None

    def put_batch(self, items):
        if self._maxsize > 0 and self._queue.qsize() + len(items) > self._maxsize:
            raise Full(f"{len(items)} items beside {self._queue.qsize()}; the queue holds {self._maxsize}")
        for item in items:
            self._queue.put_nowait(item)

    def get_batch(self, count):
        if count > self._queue.qsize():
            raise Empty(f"{count} items are asked for; the queue has {self._queue.qsize()}")
        return [self._queue.get_nowait() for _ in range(count)]
