"""A pool of actors that share work, as ray.util.ActorPool."""

from menger.runtime.actor import ActorHandle
from menger.runtime.calls import get, wait


class ActorPool:
    """Gives each piece of work to an actor that has none; what is too much waits for one."""

    def __init__(self, actors):
        self._idle = []
        self._work = {}  # (what the call returned, its actor) by the number of the work.
        self._pending_submits = []  # Work that has no actor yet.
        self._next_submitted = self._next_returned = 0
        for actor in actors:
            self._check_new(actor)
            self._idle.append(actor)

    def submit(self, fn, value):
        """Has `fn(actor, value)` called, which returns an ObjectRef, or several."""
        if not self._idle:
            self._pending_submits.append((fn, value))
            return
        actor = self._idle.pop()
        self._work[self._next_submitted] = (fn(actor, value), actor)
        self._next_submitted += 1

    def has_next(self):
        return bool(self._work) or bool(self._pending_submits)

    def has_free(self):
        return bool(self._idle) and not self._pending_submits

    def get_next(self, timeout=None, ignore_if_timedout=False):
        """The next result in the order of the work. Raises StopIteration if there is none.

        Raises TimeoutError where it is not there in time; with `ignore_if_timedout` that work is forgotten, and its actor is free.
        """
        self._check_more()
        if self._next_returned not in self._work:
            raise ValueError("get_next is called after get_next_unordered has taken what would be next")
        number = self._next_returned
        is_ready = timeout is None or bool(wait([self._first(number)], timeout=timeout)[0])
        return self._take(number, is_ready, ignore_if_timedout)

    def get_next_unordered(self, timeout=None, ignore_if_timedout=False):
        """The same for whichever result is there first."""
        self._check_more()
        numbers = {self._first(number): number for number in self._work}
        ready, pending = wait(list(numbers), num_returns=1, timeout=timeout)
        return self._take(numbers[(ready or pending)[0]], bool(ready), ignore_if_timedout)

    def map(self, fn, values):
        """The results of `fn(actor, value)` for all values, in their order. The work begins at once."""
        self._begin(fn, values)
        return self._drain(self.get_next)

    def map_unordered(self, fn, values):
        """The same, in the order in which they are there."""
        self._begin(fn, values)
        return self._drain(self.get_next_unordered)

    def pop_idle(self):
        """Takes an actor without work out of the pool; None if there is none."""
        return self._idle.pop() if self.has_free() else None

    def push(self, actor):
        """Puts an actor into the pool."""
        self._check_new(actor)
        self._free(actor)

    def _begin(self, fn, values):
        # What was submitted before and not taken is nobody's any longer.
        while self.has_next():
            try:
                self.get_next_unordered(timeout=0, ignore_if_timedout=True)
            except TimeoutError:
                pass
        self._next_returned = self._next_submitted
        for value in values:
            self.submit(fn, value)

    def _drain(self, get_next):
        while self.has_next():
            yield get_next()

    def _check_more(self):
        if not self.has_next():
            raise StopIteration("No more results to get")

    def _first(self, number):
        """What is ready when the work is done."""
        returned = self._work[number][0]
        return returned[0] if isinstance(returned, list) else returned

    def _take(self, number, is_ready, forget):
        if not is_ready and not forget:
            raise TimeoutError("no result was there in time")
        returned, actor = self._work.pop(number)
        self._next_returned = max(self._next_returned, number + 1)
        self._free(actor)
        if not is_ready:
            raise TimeoutError("a result was not there in time, and is forgotten")
        return get(returned)

    def _free(self, actor):
        self._idle.append(actor)
        if self._pending_submits:
            self.submit(*self._pending_submits.pop(0))

    def _check_new(self, actor):
        if not isinstance(actor, ActorHandle):
            raise ValueError(f"an ActorPool is of actors; this is {actor!r}")
        if actor in self._idle or any(actor == busy for _, busy in self._work.values()):
            raise ValueError(f"{actor!r} belongs to the pool already")
