"""Writes steps of one structure, and items of the last of them: Reverb's first writer."""

import logging

import numpy as np

from menger.replay import column_writer, nest

_log = logging.getLogger(__name__)


class Writer:
    """Made by Client.writer.

        with client.writer(max_sequence_length=2) as writer:
            writer.append(step)
            writer.create_item("table", num_timesteps=1, priority=1.0)
    """

    def __init__(self, columns, max_sequence_length, max_in_flight_items, client):
        self._columns = columns  # A ColumnWriter.
        self._client = client
        self._max_sequence_length = max_sequence_length
        self._max_in_flight_items = max_in_flight_items
        self._steps = []  # References of each.
        self._signatures = {}
        self._closed = False

    def __enter__(self):
        if self._closed:
            raise ValueError("this writer was closed")
        return self

    def __exit__(self, *_):
        self.flush()
        self.close()

    def __del__(self):
        if not self._closed:
            _log.warning("a Writer is gone that was not closed: what it had not inserted may be lost")
            self._closed = True
            self._columns.Close()

    def __repr__(self):
        return f"Writer(max_sequence_length={self._max_sequence_length}, steps={len(self._steps)}, closed={self._closed})"

    def append(self, data):
        """A step; the last max_sequence_length can be referred to."""
        flat = nest.flatten(data)
        if self._steps and len(flat) != len(self._steps[-1]):
            raise ValueError(f"a step of {len(flat)} values; those before have {len(self._steps[-1])}")
        self._steps.append(self._columns.Append(flat))
        del self._steps[: -self._max_sequence_length]

    def append_sequence(self, sequence):
        """Steps, one for each place of the first dimension, which all arrays share."""
        flat = [np.asarray(each) for each in nest.flatten(sequence)]
        lengths = {each.shape[0] if each.shape else None for each in flat}
        if len(lengths) != 1 or None in lengths:
            raise ValueError(f"arrays of a sequence have shapes {[each.shape for each in flat]}; the first size must be one")
        for step in range(lengths.pop()):
            self.append([each[step] for each in flat])

    def create_item(self, table, num_timesteps, priority):
        """An item of the last `num_timesteps` steps. Waits where more than max_in_flight_items are not known to be inserted."""
        if num_timesteps < 1:
            raise ValueError(f"num_timesteps is {num_timesteps}; it must be at least 1")
        if num_timesteps > len(self._steps):
            raise ValueError(f"num_timesteps is {num_timesteps}, but {len(self._steps)} steps can be referred to")
        index, notes = self._client.table(table)
        columns = list(zip(*self._steps[-num_timesteps:]))
        described = [(refs[0].dtype, refs[0].shape, False) for refs in columns]
        if notes.signature is not None:
            expected = self._signatures.setdefault(table, nest.flatten_with_path(notes.signature))
            dtypes, shapes = [each[0] for each in described], [each[1] for each in described]
            column_writer.check_signature(table, expected, dtypes, shapes)
        self._columns.add_item(index, priority, columns, described)
        if self._columns.pending > self._max_in_flight_items:
            self._columns.Flush(self._max_in_flight_items)

    def flush(self):
        """Until all items are inserted."""
        self._columns.Flush()

    def close(self, retry_on_unavailable=True):
        """Until all items are inserted; with `retry_on_unavailable` False only if the server is there."""
        if self._closed:
            raise ValueError("this writer was closed")
        self._closed = True
        try:
            self._columns.Flush(timeout_ms=None if retry_on_unavailable else 10_000)
        finally:
            self._columns.Close()
