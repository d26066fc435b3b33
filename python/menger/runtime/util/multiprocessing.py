"""A multiprocessing.Pool whose processes are actors, as ray.util.multiprocessing."""

import collections
import itertools
import threading
from multiprocessing import JoinableQueue, TimeoutError

import menger.runtime as ray

__all__ = ["AsyncResult", "IMapIterator", "JoinableQueue", "OrderedIMapIterator", "Pool", "TimeoutError", "UnorderedIMapIterator"]

_CHUNKS_PER_ACTOR = 4  # As multiprocessing does it.


class Pool:
    """Pool(processes) of multiprocessing, for programs that have one. `maxtasksperchild` restarts a process after so many chunks.

    ray_address is without effect; ray_remote_args: the actors' options, as {"num_cpus": 1}.
    """

    def __init__(
        self,
        processes=None,
        initializer=None,
        initargs=None,
        maxtasksperchild=None,
        context=None,
        ray_address=None,
        ray_remote_args=None,
    ):
        if processes is not None and not isinstance(processes, int):
            raise TypeError(f"processes is {processes!r}; it must be a number")
        if processes is not None and processes < 1:
            raise ValueError(f"processes is {processes}; a pool has at least one")
        if not ray.is_initialized():
            ray.init(address=ray_address, **({"num_cpus": processes} if processes else {}))
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if processes is not None and processes > cpus:
            raise ValueError(f"processes is {processes}; the runtime that is open has {cpus} CPUs, and a pool at most one process for each")
        self._options = ray_remote_args or {}
        self._initial = (initializer, tuple(initargs or ()))
        self._tasks_max = maxtasksperchild
        self._closed = False
        self._actors = [self._new_actor() for _ in range(processes or max(1, cpus))]
        self._done = [0] * len(self._actors)  # Chunks, of each actor that is there.
        self._turns = itertools.cycle(range(len(self._actors)))
        ray.get([actor.ping.remote() for actor in self._actors])

    def apply(self, func, args=None, kwargs=None):
        return self.apply_async(func, args, kwargs).get()

    def apply_async(self, func, args=None, kwargs=None, callback=None, error_callback=None):
        self._check_open()
        return AsyncResult([self._submit(func, [(args or (), kwargs or {})])], callback, error_callback, single=True)

    def map(self, func, iterable, chunksize=None):
        return self.map_async(func, iterable, chunksize).get()

    def map_async(self, func, iterable, chunksize=None, callback=None, error_callback=None):
        return self._map(func, [((each,), {}) for each in iterable], chunksize, callback, error_callback)

    def starmap(self, func, iterable, chunksize=None):
        return self.starmap_async(func, iterable, chunksize).get()

    def starmap_async(self, func, iterable, chunksize=None, callback=None, error_callback=None):
        return self._map(func, [(tuple(each), {}) for each in iterable], chunksize, callback, error_callback)

    def imap(self, func, iterable, chunksize=1):
        """Results one after the other, in their order; what a call raised is among them."""
        self._check_open()
        return OrderedIMapIterator(self, func, iterable, chunksize)

    def imap_unordered(self, func, iterable, chunksize=1):
        self._check_open()
        return UnorderedIMapIterator(self, func, iterable, chunksize)

    def close(self):
        """Takes no more work; the actors end when they have done what they have."""
        if not self._closed:
            self._closed = True
            for actor in self._actors:
                actor.__ray_terminate__.remote()

    def terminate(self):
        """Ends the actors at once."""
        self._closed = True
        for actor in self._actors:
            ray.kill(actor)

    def join(self):
        """Waits until all actors have ended, once the pool is closed."""
        if not self._closed:
            raise ValueError("join is called on a pool that takes work: close() or terminate() it first")
        ray.wait([actor.ping.remote() for actor in self._actors], num_returns=len(self._actors))

    def __enter__(self):
        self._check_open()
        return self

    def __exit__(self, *_error):
        self.terminate()

    def _check_open(self):
        if self._closed:
            raise ValueError("the pool is closed")

    def _map(self, func, calls, chunksize, callback, error_callback):
        self._check_open()
        if chunksize is not None and chunksize < 1:
            raise ValueError(f"chunksize is {chunksize}; it must be at least 1")
        size = chunksize or max(1, -(-len(calls) // (_CHUNKS_PER_ACTOR * len(self._actors))))
        chunks = [self._submit(func, calls[begin : begin + size]) for begin in range(0, len(calls), size)]
        return AsyncResult(chunks, callback, error_callback)

    def _new_actor(self):
        return ray.remote(_PoolActor).options(**self._options).remote(*self._initial)

    def _submit(self, func, calls):
        """Has a chunk of calls done by the actor whose turn it is: a reference on a list of what they gave or raised."""
        place = next(self._turns)
        if self._tasks_max and self._done[place] >= self._tasks_max:
            self._actors[place].__ray_terminate__.remote()
            self._actors[place], self._done[place] = self._new_actor(), 0
        self._done[place] += 1
        return self._actors[place].run.remote(func, calls)


class _PoolActor:
    def __init__(self, initializer, arguments):
        if initializer is not None:
            initializer(*arguments)

    def ping(self):
        return True

    def run(self, func, calls):
        return [_outcome(func, arguments, keywords) for arguments, keywords in calls]


class _Raised:
    """What a call raised, on its way back."""

    def __init__(self, error):
        self.error = error


def _outcome(func, arguments, keywords):
    try:
        return func(*arguments, **keywords)
    except Exception as error:
        return _Raised(error)


class AsyncResult:
    """What apply_async and map_async return."""

    def __init__(self, chunks, callback=None, error_callback=None, single=False):
        self._chunks, self._single = chunks, single
        self._callback, self._error_callback = callback, error_callback
        self._value = self._error = None
        self._done = threading.Event()
        threading.Thread(target=self._gather, name="pool result", daemon=True).start()

    def wait(self, timeout=None):
        self._done.wait(timeout)

    def get(self, timeout=None):
        if not self._done.wait(timeout):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._value

    def ready(self):
        return self._done.is_set()

    def successful(self):
        if not self.ready():
            raise ValueError("the result is not ready")
        return self._error is None

    def _gather(self):
        try:
            outcomes = [each for chunk in ray.get(self._chunks) for each in chunk]
            self._error = next((each.error for each in outcomes if isinstance(each, _Raised)), None)
            self._value = outcomes[0] if self._single else outcomes
        except Exception as error:
            self._error = error
        told = self._callback if self._error is None else self._error_callback
        try:
            if told is not None:
                told(self._value if self._error is None else self._error)
        finally:
            self._done.set()


class IMapIterator:
    """Results of chunks as they come. A few chunks an actor are under way, however long the iterable is."""

    def __init__(self, pool, func, iterable, chunksize):
        if chunksize < 1:
            raise ValueError(f"chunksize is {chunksize}; it must be at least 1")
        self._pool, self._func, self._size = pool, func, chunksize
        self._values = iter(iterable)
        self._chunks = []  # References, in their order.
        self._outcomes = collections.deque()
        for _ in range(_CHUNKS_PER_ACTOR * len(pool._actors)):
            self._submit()

    def __iter__(self):
        return self

    def __next__(self):
        return self.next()

    def next(self, timeout=None):
        """The next result, or the exception that took its place. Raises TimeoutError."""
        if not self._outcomes:
            if not self._chunks:
                raise StopIteration
            ready, _ = ray.wait(self._awaited(), timeout=timeout)
            if not ready:
                raise TimeoutError
            self._chunks.remove(ready[0])
            self._outcomes.extend(self._read(ready[0]))
            self._submit()
        outcome = self._outcomes.popleft()
        return outcome.error if isinstance(outcome, _Raised) else outcome

    def _submit(self):
        calls = [((each,), {}) for each in itertools.islice(self._values, self._size)]
        if calls:
            self._chunks.append(self._pool._submit(self._func, calls))

    def _read(self, chunk):
        try:
            return ray.get(chunk)
        except ray.exceptions.RayError as error:  # The actor has died.
            return [_Raised(error)]

    def _awaited(self):
        raise NotImplementedError


class OrderedIMapIterator(IMapIterator):
    def _awaited(self):
        return self._chunks[:1]


class UnorderedIMapIterator(IMapIterator):
    def _awaited(self):
        return self._chunks
