"""Calls whose results come one by one: the reader's end of a generator that runs on a worker."""

import array
import threading
import time
import types

from menger.runtime import options
from menger.runtime.session import DROPPED, LEFT, ObjectRef


class ObjectRefGenerator:
    """The references on what a remote generator yields, each as soon as it is there; also by `async for`.

    Where the generator raises, the last reference is that of the error. Where it is dropped before its end the call goes on, as in Ray.
    """

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, session, call, end):
        self._session, self._call = session, call
        self._generator_ref = end  # Ready when all items are there; its value is how many.
        self._item, self._count, self._over = None, 0, False
        self._reading = threading.Lock()  # Of the threads that ask for the next item one has it.

    def __iter__(self):
        return self

    def __next__(self):
        with self._reading:
            return self._take(self._is_item_ready(None))

    def _is_item_ready(self, timeout):
        """Whether there is a next item; None where that is not known in time."""
        if self._over:
            return False
        flags = self._session.wait(array.array("Q", [each.handle for each in self.watched()]), 1, timeout)
        return True if flags[0] else (False if flags[1] else None)

    def watched(self):
        """The references of which one is ready once there is something to take."""
        if self._over:
            return [self._generator_ref]
        if self._item is None:
            self._item = self._session.item(self._call, self._count)
        return [self._item, self._generator_ref]

    def _take(self, is_item):
        if self._over:
            raise StopIteration
        item, self._item = self._item, None
        if is_item:
            self._count += 1
            self._session.take(self._call, self._count)
            return item
        self._over = True  # All items are there before the end is.
        self._session.take(self._call, DROPPED)
        if self._session.has_failed(self._generator_ref):
            return self._generator_ref
        raise StopIteration

    def __aiter__(self):
        return self

    async def __anext__(self):
        import asyncio

        from menger.runtime import waiting

        if not self._over and self._is_item_ready(0) is None:
            loop = asyncio.get_running_loop()
            futures = [waiting.future_of_loop(each, self._session, loop, with_value=False) for each in self.watched()]
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        try:
            return self._take(self._is_item_ready(None))
        except StopIteration:
            raise StopAsyncIteration from None

    def completed(self):
        """An ObjectRef that is ready, and raises what the generator has raised, once it is done."""
        return self._generator_ref

    def next_ready(self):
        """Whether the next item, or the end, is there; once all has been taken there is none."""
        return not self._over and self._is_item_ready(0) is not None

    def is_finished(self):
        """Whether all has been taken."""
        return self._over or (self._is_item_ready(0) is False and not self._session.has_failed(self._generator_ref))

    def task_id(self):
        return self._call

    def __del__(self):
        if not self.__dict__.get("_over", True):
            self._session.take(self._call, LEFT)

    def __reduce__(self):
        raise TypeError("an ObjectRefGenerator cannot be sent: only who called the generator reads it; send the ObjectRefs")


class DynamicObjectRefGenerator:
    """The value of a call with num_returns="dynamic": the references on all that was yielded."""

    def __init__(self, references):
        self._references = list(references)

    def __iter__(self):
        while self._references:
            yield self._references.pop(0)

    def __next__(self):
        if not self._references:
            raise StopIteration
        return self._references.pop(0)

    def __len__(self):
        return len(self._references)

    def __reduce__(self):
        return (DynamicObjectRefGenerator, (self._references,))


def count(results):
    """How many references a call has that is told this num_returns."""
    return 1 if isinstance(results, str) else results or 1


def call(owner, made, results, arguments, keywords):
    """Calls; what `remote` returns for this num_returns."""
    if results == 1 or results == options.DYNAMIC:
        return owner.call(made, 1, arguments, keywords)
    if results == options.STREAMING:
        return ObjectRefGenerator(owner, *owner.stream(made, arguments, keywords))
    references = owner.call(made, results or 1, arguments, keywords)
    return references if results else None


def wait(session, objects, wanted, timeout):
    """Which of ObjectRefs and generators are ready, once `wanted` are or the time has passed: a byte each."""
    ready = bytearray(len(objects))
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        handles, places = array.array("Q"), []
        for place, each in enumerate(objects):
            watched = () if ready[place] else (each,) if type(each) is ObjectRef else each.watched()
            handles.extend(one.handle for one in watched)
            places += [place] * len(watched)
        left = None if end is None else max(0.0, end - time.monotonic())
        for place, flag in zip(places, session.wait(handles, 1, left)):
            ready[place] |= flag
        if sum(ready) >= min(wanted, len(objects)) or left == 0:
            return bytes(ready)
