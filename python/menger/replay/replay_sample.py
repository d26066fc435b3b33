"""What sampling gives."""

from typing import Any, NamedTuple


class SampleInfo(NamedTuple):
    """Of an item, when it was drawn."""

    key: int  # For Client.mutate_priorities.
    probability: float  # Of this draw.
    table_size: int  # Items in the table.
    priority: float
    times_sampled: int  # This time included.

    @classmethod
    def zeros(cls):
        return cls(0, 0.0, 0, 0.0, 0)


class ReplaySample(NamedTuple):
    info: SampleInfo
    data: Any  # Arrays: a list, or structured as the table's signature.
