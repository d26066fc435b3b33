"""Reaches a server of this host: writes, draws, changes priorities."""

import os

import numpy as np

from menger.replay import checkpointers, chunking, column_writer, errors, items, native, nest, structured_writer, table_info
from menger.replay.legacy_writer import Writer
from menger.replay.replay_sample import ReplaySample
from menger.replay.trajectory_writer import TrajectoryWriter

_CHECKPOINT_NS = int(24 * 3600 * 1e9)


class Client:
    """Of the server at "localhost:<port>", which is looked for with the first call. Any thread."""

    def __init__(self, server_address):
        self._server_address = server_address
        self._connected = None

    def __reduce__(self):
        return type(self), (self._server_address,)

    def __repr__(self):
        return f"Client(server_address={self._server_address!r})"

    @property
    def server_address(self):
        return self._server_address

    def _native(self):
        found = self._connected
        if found is None or found.process != os.getpid():
            found = self._connected = native.NativeClient(self._server_address)
        return found

    # ---- Writers

    def insert(self, data, priorities):
        """One item of one step into each table that `priorities` names, with its priority there; returns when they are in."""
        if not priorities:
            raise ValueError("priorities names no table; it must name at least one")
        with self.writer(max_sequence_length=1) as writer:
            writer.append(data)
            for table, priority in priorities.items():
                writer.create_item(table=table, num_timesteps=1, priority=priority)

    def writer(self, max_sequence_length, delta_encoded=False, chunk_length=None, max_in_flight_items=25):
        """A Writer of steps of one structure. `delta_encoded` changes nothing."""
        del delta_encoded
        if max_sequence_length < 1:
            raise ValueError(f"max_sequence_length is {max_sequence_length}; it must be at least 1")
        if chunk_length is not None and not 1 <= chunk_length <= max_sequence_length:
            raise ValueError(f"chunk_length is {chunk_length}; it must be 1 to max_sequence_length ({max_sequence_length})")
        if max_in_flight_items is None:
            max_in_flight_items = 1_000_000
        if max_in_flight_items < 1:
            raise ValueError(f"max_in_flight_items is {max_in_flight_items}; it must be at least 1")
        if chunk_length is None:
            options = chunking.AutoTunedChunkerOptions(max_sequence_length)
        else:
            options = chunking.ConstantChunkerOptions(chunk_length, max_sequence_length)
        connected = self._native()
        columns = column_writer.ColumnWriter(connected, options)
        return Writer(columns, max_sequence_length, max_in_flight_items, connected)

    def trajectory_writer(self, num_keep_alive_refs, *, validate_items=True):
        """A TrajectoryWriter whose columns each keep the last `num_keep_alive_refs` values for items.

        With `validate_items` an item that is not as its table's signature has it is refused.
        """
        options = chunking.AutoTunedChunkerOptions(num_keep_alive_refs, 1.0)
        return TrajectoryWriter(column_writer.ColumnWriter(self._native(), options, validate_items))

    def structured_writer(self, configs):
        """A StructuredWriter, which creates items as `configs` say."""
        return structured_writer.make_writer(
            configs,
            lambda kept: column_writer.ColumnWriter(self._native(), chunking.AutoTunedChunkerOptions(kept), False),
        )

    # ---- Samples

    def sample(self, table, num_samples=1, *, emit_timesteps=True, unpack_as_table_signature=False):
        """Draws items, one as each is asked for; waits where the table makes it wait.

        Yields lists with a ReplaySample a step, or with `emit_timesteps` False a ReplaySample an item. Data is a flat list, or
        with `unpack_as_table_signature` structured as the table's signature, if it has one.
        """
        connected = self._native()
        index, notes = connected.table(table)
        signature = notes.signature if unpack_as_table_signature else None
        sampler = connected.take_sampler(index)
        try:
            for _ in range(num_samples):
                [item] = sampler.draw(1)
                info, data = items.info_of(item), items.arrays_of(sampler, item)
                sampler.release()
                yield _timesteps(info, data, signature) if emit_timesteps else ReplaySample(info, _unpacked(data, signature))
        finally:
            connected.give_sampler(sampler)

    # ---- Tables

    def mutate_priorities(self, table, updates=None, deletes=None):
        """New priorities by key, then deletions; items that are gone are passed over."""
        connected = self._native()
        library, (index, _) = connected.library, connected.table(table)
        if updates:
            keys = np.fromiter(updates.keys(), np.uint64, len(updates))
            priorities = np.fromiter(updates.values(), np.float64, len(updates))
            arrays = keys.ctypes.data, priorities.ctypes.data
            library.check(library.client_update(connected.handle, index, *arrays, len(keys), None))
        if deletes:
            keys = np.fromiter(deletes, np.uint64, len(deletes))
            library.check(library.client_delete_items(connected.handle, index, keys.ctypes.data, len(keys), None))

    def reset(self, table):
        """Removes all items of the table, those too that writers of this client have just created; its limiter begins anew."""
        connected = self._native()
        connected.settle()
        index, _ = connected.table(table)
        connected.library.check(connected.library.client_reset(connected.handle, index))

    def server_info(self, timeout=None):
        """TableInfo of each table, by name. Raises DeadlineExceededError after `timeout` seconds."""
        if timeout is not None:
            try:
                native.NativeClient(self._server_address, timeout)
            except errors.DeadlineExceededError as error:
                raise errors.DeadlineExceededError(f"server_info did not end within {timeout} s: {error}") from error
        return table_info.parse(self._native().info_text())

    def checkpoint(self):
        """Writes all tables to the disk; returns where the checkpoint is."""
        connected = self._native()
        connected.library.check(connected.library.client_checkpoint(connected.handle, _CHECKPOINT_NS))
        folder = next(notes.checkpoints for _, notes in connected.tables.values())
        return checkpointers.newest(folder)


def _unpacked(data, signature):
    return data if signature is None else nest.unflatten_as(signature, data)


def _timesteps(info, data, signature):
    lengths = {len(column) if column.ndim else None for column in data}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(
            "an item whose columns have different lengths cannot be given step by step: use emit_timesteps=False"
        )
    steps = range(lengths.pop())
    return [ReplaySample(info, _unpacked([np.asarray(column[i], column.dtype) for column in data], signature)) for i in steps]
