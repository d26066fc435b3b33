"""Samples one after the other, without an end, as NumPy arrays: iterators in place of Reverb's TensorFlow datasets."""

import itertools

import numpy as np

from menger.replay import client as client_lib
from menger.replay import errors, items, nest, specs
from menger.replay.replay_sample import ReplaySample


def _check(name, value, least, otherwise=None):
    if value != otherwise and value < least:
        allowed = f"at least {least}" + ("" if otherwise is None else f", or {otherwise}")
        raise ValueError(f"{name} ({value}) must be {allowed}")


class Elements:
    """What can be iterated over as often as one likes; the methods give other such things."""

    def __init__(self, make_iterator):
        self._make_iterator = make_iterator

    def __iter__(self):
        return self._make_iterator()

    def as_numpy_iterator(self):
        return iter(self)

    def take(self, count):
        return Elements(lambda: itertools.islice(iter(self), count))

    def map(self, function):
        return Elements(lambda: map(function, self))

    def batch(self, batch_size, drop_remainder=False):
        """So many elements as one, each array with a dimension more; their shapes must be equal."""

        def batches():
            elements = iter(self)
            while batch := list(itertools.islice(elements, batch_size)):
                if drop_remainder and len(batch) < batch_size:
                    return
                yield nest.map_structure(lambda *arrays: np.stack(arrays), *batch)

        return Elements(batches)


def _specs(dtypes, shapes):
    """A structure of TensorSpec: `shapes` has a shape where `dtypes` has a type."""
    parts = nest.children(dtypes)
    if parts is None:
        return specs.TensorSpec(shapes.as_list() if hasattr(shapes, "as_list") else shapes, dtypes)
    inside = nest.children(shapes)
    if inside is None or [key for key, _ in inside] != [key for key, _ in parts]:
        raise ValueError(f"dtypes and shapes have different structures: {dtypes} and {shapes}")
    return nest.rebuild(dtypes, [_specs(dtype, shape) for (_, dtype), (_, shape) in zip(parts, inside)])


class _Dataset(Elements):
    """Each iterator draws anew, `max_in_flight_samples_per_worker` items at a time."""

    def __init__(
        self,
        server_address,
        table,
        dtypes,
        shapes,
        max_in_flight_samples_per_worker,
        num_workers_per_iterator=-1,
        max_samples_per_stream=-1,
        rate_limiter_timeout_ms=-1,
        max_samples=-1,
    ):
        """Data is structured as `dtypes` and `shapes` are; the rest is as from_table_signature has it."""
        super().__init__(self._elements)
        _check("max_in_flight_samples_per_worker", max_in_flight_samples_per_worker, 1)
        _check("num_workers_per_iterator", num_workers_per_iterator, 1, otherwise=-1)
        _check("max_samples_per_stream", max_samples_per_stream, 1, otherwise=-1)
        _check("rate_limiter_timeout_ms", rate_limiter_timeout_ms, -1)
        _check("max_samples", max_samples, 1, otherwise=-1)
        self._client = client_lib.Client(server_address)
        self._table = table
        self._signature = _specs(dtypes, shapes)
        self._draw = max_in_flight_samples_per_worker
        self._timeout = None if rate_limiter_timeout_ms < 0 else rate_limiter_timeout_ms / 1000
        self._max_samples = max_samples

    @classmethod
    def from_table_signature(
        cls,
        server_address,
        table,
        max_in_flight_samples_per_worker,
        num_workers_per_iterator=-1,
        max_samples_per_stream=-1,
        rate_limiter_timeout_ms=-1,
        get_signature_timeout_secs=None,
        max_samples=-1,
    ):
        """Of a table with a signature, as which data is structured.

        An iterator ends after `max_samples` items (-1: never), or when the table gives none for rate_limiter_timeout_ms (-1: it
        waits). Workers and streams are Reverb's and change nothing here.
        """
        info = client_lib.Client(server_address).server_info(get_signature_timeout_secs)
        if table not in info:
            raise ValueError(f"the server at {server_address} has no table '{table}'; it has {', '.join(sorted(info))}")
        if info[table].signature is None:
            raise ValueError(f"table '{table}' at {server_address} has no signature")
        signature = info[table].signature
        return cls(
            server_address,
            table,
            nest.map_structure(lambda spec: spec.dtype, signature),
            nest.map_structure(lambda spec: spec.shape, signature),
            max_in_flight_samples_per_worker,
            num_workers_per_iterator,
            max_samples_per_stream,
            rate_limiter_timeout_ms,
            max_samples,
        )

    @property
    def element_spec(self):
        return self._signature

    def _items(self):
        """(SampleInfo, arrays) of each."""
        connected = self._client._native()
        index, _ = connected.table(self._table)
        sampler = connected.take_sampler(index)
        left = self._max_samples
        try:
            while left != 0:
                count = self._draw if left < 0 else min(self._draw, left)
                try:
                    drawn = sampler.draw(count, self._timeout)
                except errors.DeadlineExceededError:
                    return
                read = [(items.info_of(item), items.arrays_of(sampler, item)) for item in drawn]
                sampler.release()
                left -= len(read) if left > 0 else 0
                yield from read
        finally:
            connected.give_sampler(sampler)

    def _unpacked(self, arrays):
        return nest.unflatten_as(self._signature, arrays)


class TrajectoryDataset(_Dataset):
    """Whole items. The table's signature is that of an item."""

    def _elements(self):
        for info, arrays in self._items():
            yield ReplaySample(info, self._unpacked(arrays))


class TimestepDataset(_Dataset):
    """Steps of items, one item after the other. The table's signature is that of a step."""

    def _elements(self):
        for info, arrays in self._items():
            if len({len(array) for array in arrays}) != 1:
                raise ValueError(f"items of table '{self._table}' have columns of different lengths; they are no steps")
            for step in zip(*arrays):
                yield ReplaySample(info, self._unpacked([np.asarray(value) for value in step]))
