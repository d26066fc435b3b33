"""How the values of a column are cut into chunks."""

import dataclasses


def _check_refs(num_keep_alive_refs):
    if num_keep_alive_refs < 1:
        raise ValueError(f"num_keep_alive_refs ({num_keep_alive_refs}) must be at least 1")


@dataclasses.dataclass(frozen=True)
class AutoTunedChunkerOptions:
    """Chunks of a few kB, or of an item where that is more."""

    num_keep_alive_refs: int
    throughput_weight: float = 1.0

    def __post_init__(self):
        _check_refs(self.num_keep_alive_refs)

    def chunk_rows(self, row_bytes):
        of_items = min(self.num_keep_alive_refs, 65_536 // row_bytes)
        return max(1, min(64, max(4096 // row_bytes, of_items)))


@dataclasses.dataclass(frozen=True)
class ConstantChunkerOptions:
    max_chunk_length: int
    num_keep_alive_refs: int

    def __post_init__(self):
        _check_refs(self.num_keep_alive_refs)
        if not 1 <= self.max_chunk_length <= self.num_keep_alive_refs:
            raise ValueError(
                f"max_chunk_length ({self.max_chunk_length}) must be 1 to num_keep_alive_refs"
                f" ({self.num_keep_alive_refs})"
            )

    def chunk_rows(self, row_bytes):
        del row_bytes
        return min(self.max_chunk_length, 65_535)
