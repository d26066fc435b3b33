"""Functions that run on workers, and what `remote` makes of functions and classes."""

import functools
import inspect
import threading

from menger.runtime import current, definitions, feasibility, generators, library, options, signatures
from menger.runtime.actor import DECORATOR, ActorClass, ActorHandle, ActorMethod, has_coroutines
from menger.runtime.definitions import Definition

# Of the threads that call a function for the first time one makes what the library calls it by.
_making = threading.RLock()

__all__ = ["ActorClass", "ActorHandle", "ActorMethod", "RemoteFunction", "remote"]


def _call_flat(call, arguments, keywords):
    return call(*arguments, **keywords)


class RemoteFunction:
    """A function whose `remote(...)` calls it on a worker and returns at once."""

    def __init__(self, definition, told, signature=None, results=None):
        self._definition = definition
        self._options = options.check(told, options.FUNCTION_OPTIONS)
        self._signature = signature or signatures.signature_of(definition.target)
        self._usual_results = results or options.results_of(definition.target)
        self._forget_callable()
        options.check_results(self._results, self._usual_results, definition.name)
        self.__name__ = definition.name
        self.__doc__ = getattr(definition.target, "__doc__", None)
        decorate = getattr(definition.target, DECORATOR, None)
        if decorate is not None:
            call = functools.partial(_call_flat, functools.partial(RemoteFunction.remote, self))
            self.remote = lambda *arguments, **keywords: decorate(call)(arguments, keywords)

    def __call__(self, *_arguments, **_keywords):
        raise TypeError(f"'{self.__name__}' is a remote function and cannot be called directly: call {self.__name__}.remote()")

    def options(self, **told):
        """The same function, called with other options."""
        return RemoteFunction(self._definition, {**self._options, **told}, self._signature, self._usual_results)

    def remote(self, *arguments, **keywords):
        self._signature.check(self.__name__, arguments, keywords)
        owner = current.session()
        if self._session is not owner:
            with _making:
                if self._session is not owner:
                    self._make_callable(owner)
        if self._waits_for is not None:
            keywords = feasibility.with_wait(keywords, self._waits_for)
        if self._results == 1:
            return owner.call(self._callable, 1, arguments, keywords)
        return generators.call(owner, self._callable, self._results, arguments, keywords)

    def _remote(self, args=(), kwargs=None, **told):
        return self.options(**told).remote(*args, **(kwargs or {}))

    def _forget_callable(self):
        self._session = self._callable = self._waits_for = None
        given = self._options.get("num_returns")
        self._results = self._usual_results if given is None else given

    def _make_callable(self, owner):
        self._drop_callable()
        self._session = None
        told = options.filled(self._options, options.FUNCTION_OPTIONS)
        retried = told["retry_exceptions"]
        more = {}
        if retried:
            more["retried"] = (Exception,) if retried is True else tuple(retried)
        if self._results == options.DYNAMIC:
            more["dynamic"] = True
        self._callable, self._waits_for = definitions.make_callable(
            owner,
            self._definition,
            told,
            more,
            kind=library.FUNCTION,
            results=generators.count(self._results),
            name=(told["name"] or self._definition.name).encode(),
            retries=options.retries(told["max_retries"]),
            retry_errors=int(bool(retried)),
            stream_ahead=options.ahead(told) if self._results == options.STREAMING else 0,
        )
        self._session = owner

    def _drop_callable(self):
        if getattr(self, "_session", None) is not None:
            self._session.drop_callable(self._callable)

    __del__ = _drop_callable

    # A function may contain itself: it is made before what it contains is read.
    def __getstate__(self):
        return self._definition, self._options, self._signature, self._usual_results

    def __setstate__(self, state):
        self.__init__(*state)


def remote(*target, **told):
    """Makes a function or class remote: as a decorator, with or without options, or called."""
    if len(target) == 1 and not told:
        return _make(target[0], {})
    if target or not told:
        raise TypeError("remote takes a function or class, or options by their names")
    return lambda each: _make(each, told)


def _make(target, told):
    if inspect.isclass(target):
        if has_coroutines(target):
            told = {"max_concurrency": options.CONCURRENCY_OF_COROUTINES, **told}
        return ActorClass(Definition(target), told)
    # What stands for a function, as functools.partial's objects do, has no name by which it could be told from others.
    if not callable(target) or not hasattr(target, "__name__") or isinstance(target, (RemoteFunction, ActorClass)):
        raise TypeError(f"remote takes a function or a class, and nothing else that can be called; this is {target!r}")
    if inspect.iscoroutinefunction(target):
        raise ValueError(
            f"'async def' should not be used for remote tasks, as '{getattr(target, '__name__', target)}' does: make it a method of an"
            " actor, or a function that calls asyncio.run"
        )
    return RemoteFunction(Definition(target), told)
