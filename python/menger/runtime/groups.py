"""Concurrency groups: methods of an actor that have threads, or a loop, of their own."""

import asyncio
import concurrent.futures
import contextvars
import types

from menger.runtime.actor import declared_options


class Groups:
    """`sizes`: how many calls each does at once, by their names; `others`: all methods that are in none."""

    def __init__(self, sizes, others, coroutines):
        """`coroutines` makes a loop for the calls of a group; None: they are done by threads."""
        sizes = {"": others, **sizes}
        self._groups = {name: _Loop(size, coroutines()) if coroutines else _Threads(size) for name, size in sizes.items()}

        self.usual = self._groups[""]

    def of(self, method, group):
        """What runs a call of the method, which names that group or ""."""
        name = group or declared_options(method).get("concurrency_group") or ""
        if name not in self._groups:
            known = ", ".join(each for each in self._groups if each)
            raise ValueError(f"concurrency_group is '{name}'; the actor has: {known}")
        return self._groups[name]


class _Threads:
    """They cannot be interrupted."""

    def __init__(self, size):
        self._executor = concurrent.futures.ThreadPoolExecutor(size, thread_name_prefix="menger group")

    def run(self, method, arguments, keywords, begun):
        begun(True)
        context = contextvars.copy_context()
        return self._executor.submit(context.run, method, *arguments, **keywords).result()

    def cancel(self, thread):
        pass


class _Loop:
    def __init__(self, size, coroutines):
        self._semaphore, self._coroutines = asyncio.Semaphore(size), coroutines

    def run(self, method, arguments, keywords, begun):
        async def limited():
            async with self._semaphore:
                value = method(*arguments, **keywords)
                return await value if type(value) is types.CoroutineType else value

        return self._coroutines.run(limited, (), {}, begun)

    def cancel(self, thread):
        self._coroutines.cancel(thread)
