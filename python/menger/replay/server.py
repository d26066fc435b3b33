"""Tables, and the server of them."""

import collections
import ctypes
import json
import os
import sys
import threading
import weakref

from menger.replay import addresses, checkpointers, client, item_selectors, rate_limiters, specs, table_info
from menger.replay import library as library_lib
from menger.replay import native, nest

_STOP_NS = 200_000_000


def _bounded(limiter):
    """What of a rate limiter has bounds: those of all numbers are none."""
    bounds = {}
    if limiter.min_diff > -sys.float_info.max:
        bounds["min_diff"] = limiter.min_diff
    if limiter.max_diff < sys.float_info.max:
        bounds["max_diff"] = limiter.max_diff
    return bounds


class Table:
    """Items, how they are chosen, how fast they may come and go. A Server serves it.

    `signature` is a structure of what has a shape and a type (TensorSpec, arrays): what items' columns look like. `extensions`
    must be empty. Rows that its items need may take `bytes_max`: by default an equal share of seven eighths of the server's.
    """

    def __init__(
        self,
        name,
        sampler,
        remover,
        max_size,
        rate_limiter,
        max_times_sampled=0,
        extensions=(),
        signature=None,
        *,
        bytes_max=None,
    ):
        if not name:
            raise ValueError("the name of a table is empty")
        if max_size <= 0:
            raise ValueError(f"max_size of table '{name}' is {max_size}; it must be at least 1")
        if extensions:
            raise ValueError(f"table '{name}' has extensions; menger.replay has none")
        for selector in (sampler, remover):
            if not isinstance(selector, item_selectors.Selector):
                raise TypeError(f"table '{name}': {selector!r} is no selector")
        if not isinstance(rate_limiter, rate_limiters.RateLimiter):
            raise TypeError(f"table '{name}': {rate_limiter!r} is no rate limiter")
        self._name = name
        self._sampler = sampler
        self._remover = remover
        self._max_size = int(max_size)
        self._max_times_sampled = max(0, int(max_times_sampled or 0))
        self._rate_limiter = rate_limiter
        self._signature = None if signature is None else nest.map_structure(specs.as_spec, signature)
        self._bytes_max = bytes_max
        self._served = None  # The server's handle, and this table's number there.

    @classmethod
    def queue(cls, name, max_size, extensions=(), signature=None):
        """Items leave in the order in which they came, each once; a full one lets inserts wait."""
        return cls(
            name=name,
            sampler=item_selectors.Fifo(),
            remover=item_selectors.Fifo(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=rate_limiters.Queue(max_size),
            extensions=extensions,
            signature=signature,
        )

    @classmethod
    def stack(cls, name, max_size, extensions=(), signature=None):
        """Items leave newest first, each once; a full one lets inserts wait."""
        return cls(
            name=name,
            sampler=item_selectors.Lifo(),
            remover=item_selectors.Lifo(),
            max_size=max_size,
            max_times_sampled=1,
            rate_limiter=rate_limiters.Stack(max_size),
            extensions=extensions,
            signature=signature,
        )

    @property
    def name(self):
        return self._name

    @property
    def info(self):
        if self._served is not None:
            handle, _ = self._served
            return handle.infos()[self._name]
        limiter = self._rate_limiter
        return table_info.TableInfo(
            name=self._name,
            sampler_options=table_info.SelectorOptions(self._sampler.kind, self._sampler.exponent),
            remover_options=table_info.SelectorOptions(self._remover.kind, self._remover.exponent),
            max_size=self._max_size,
            max_times_sampled=self._max_times_sampled,
            rate_limiter_info=table_info.RateLimiterInfo(
                limiter.samples_per_insert, limiter.min_size_to_sample, limiter.min_diff, limiter.max_diff
            ),
            signature=self._signature,
        )

    def can_sample(self, num_samples):
        return self._ask("server_can_sample", num_samples)

    def can_insert(self, num_inserts):
        return self._ask("server_can_insert", num_inserts)

    def _ask(self, function, count):
        if self._served is None:
            raise RuntimeError(f"table '{self._name}' is not served: give it to a Server")
        handle, index = self._served
        return handle.ask(function, index, count)

    def replace(
        self,
        name=None,
        sampler=None,
        remover=None,
        max_size=None,
        rate_limiter=None,
        max_times_sampled=None,
        extensions=None,
        signature=None,
    ):
        """A new table, without items, that is as this one but for what is given."""
        return Table(
            name=self._name if name is None else name,
            sampler=sampler or self._sampler,
            remover=remover or self._remover,
            max_size=self._max_size if max_size is None else max_size,
            rate_limiter=rate_limiter or self._rate_limiter,
            max_times_sampled=self._max_times_sampled if max_times_sampled is None else max_times_sampled,
            extensions=() if extensions is None else extensions,
            signature=self._signature if signature is None else signature,
            bytes_max=self._bytes_max,
        )

    def _serve(self, handle, index):
        self._served = (handle, index)

    def _config(self, checkpoints):
        limiter = self._rate_limiter
        return {
            "name": self._name,
            "sampler": {"kind": self._sampler.kind, "exponent": self._sampler.exponent},
            "remover": {"kind": self._remover.kind, "exponent": self._remover.exponent},
            "items_max": self._max_size,
            "times_sampled_max": self._max_times_sampled,
            "samples_per_insert": limiter.samples_per_insert,
            "min_size": limiter.min_size_to_sample,
            "notes": table_info.Notes(self._signature, checkpoints).encode(),
            **_bounded(limiter),
            **({} if self._bytes_max is None else {"bytes_max": int(self._bytes_max)}),
        }

    def __repr__(self):
        return (
            f"Table(name={self._name!r}, sampler={self._sampler}, remover={self._remover}, max_size={self._max_size},"
            f" max_times_sampled={self._max_times_sampled}, rate_limiter={self._rate_limiter})"
        )


class _Handle:
    """A server of the library; goes when nobody has it."""

    def __init__(self, config):
        self._library = library_lib.load()
        self._handle = self._library.server_start(json.dumps(config).encode())
        if not self._handle:
            raise self._library.failure()
        self._finalizer = weakref.finalize(self, native.release, self._library.server_delete, self._handle, os.getpid())

    def stop(self):
        if self._finalizer.alive:  # Not so when the interpreter ends.
            self._library.check(self._library.server_stop(self._handle, _STOP_NS))

    def infos(self):
        return table_info.parse(self._library.text(self._library.server_info, self._handle))

    def ask(self, function, index, count):
        answer = ctypes.c_int32()
        self._library.check(getattr(self._library, function)(self._handle, index, count, ctypes.byref(answer)))
        return answer.value != 0


class Server:
    """Serves tables to the processes of this host, in threads of this one.

    `port` names the server: a client finds it as "localhost:<port>"; None takes a free one. No TCP port is opened. All rows
    together may take `bytes_max` bytes: by default three quarters of the memory that this process can have.
    """

    def __init__(self, tables=None, port=None, checkpointer=None, *, bytes_max=None):
        if not tables:
            raise ValueError("a server needs at least one table")
        names = collections.Counter(table.name for table in tables)
        repeated = sorted(name for name, count in names.items() if count > 1)
        if repeated:
            raise ValueError(f"several tables are named {', '.join(repeated)}; names must differ")
        self._checkpointer = checkpointers.default_checkpointer() if checkpointer is None else checkpointer
        folder = self._checkpointer.folder()
        config = {
            "bytes_max": bytes_max or 0,
            "folder": folder,
            "tables": [table._config(folder) for table in tables],
        }
        self._handle, self._port = self._start(config, port)
        self._stopped = threading.Event()
        for index, table in enumerate(tables):
            table._serve(self._handle, index)

    @staticmethod
    def _start(config, port):
        if port is not None:
            return _Handle({**config, "socket": addresses.socket_of_port(port)}), port
        failure = None
        for free in addresses.free_ports():
            try:
                return _Handle({**config, "socket": addresses.socket_of_port(free)}), free
            except RuntimeError as error:
                if "listens" not in str(error):
                    raise
                failure = error  # Somebody was quicker.
        raise failure or RuntimeError("there is no free port")

    @property
    def port(self):
        return self._port

    def stop(self):
        """Serves no longer. Tables can still be asked what they hold."""
        self._handle.stop()
        self._stopped.set()

    def wait(self):
        """Until `stop`, by another thread, or KeyboardInterrupt."""
        while not self._stopped.wait(1):
            pass

    def localhost_client(self):
        return client.Client(f"localhost:{self._port}")

    def __del__(self):
        if hasattr(self, "_stopped"):
            self.stop()

    def __repr__(self):
        return f"Server(port={self._port})"
