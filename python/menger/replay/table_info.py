"""What a server tells of its tables."""

import dataclasses
import json
import sys
from typing import Any

from menger.replay import item_selectors, specs


@dataclasses.dataclass(frozen=True)
class PrioritizedOptions:
    priority_exponent: float = 0.0


@dataclasses.dataclass(frozen=True)
class HeapOptions:
    min_heap: bool = False


@dataclasses.dataclass(frozen=True)
class SelectorOptions:
    """A selector. HasField says which it is: one of "uniform", "fifo", "lifo", "heap", "prioritized"."""

    kind: int
    exponent: float = 1.0

    _FIELDS = ("uniform", "fifo", "lifo", "heap", "heap", "prioritized")

    def HasField(self, name):  # noqa: N802 (Reverb's name)
        return self._FIELDS[self.kind] == name

    @property
    def uniform(self):
        return self.HasField("uniform")

    @property
    def fifo(self):
        return self.HasField("fifo")

    @property
    def lifo(self):
        return self.HasField("lifo")

    @property
    def heap(self):
        return HeapOptions(self.kind == item_selectors.MinHeap().kind)

    @property
    def prioritized(self):
        return PrioritizedOptions(self.exponent if self.HasField("prioritized") else 0.0)

    @property
    def is_deterministic(self):
        return not (self.uniform or self.HasField("prioritized"))

    def selector(self):
        return item_selectors.of_kind(self.kind, self.exponent)


@dataclasses.dataclass(frozen=True)
class CallStats:
    completed: int = 0  # Items.
    pending: int = 0  # Calls that wait.


@dataclasses.dataclass(frozen=True)
class RateLimiterInfo:
    samples_per_insert: float
    min_size_to_sample: int
    min_diff: float
    max_diff: float
    insert_stats: CallStats = CallStats()
    sample_stats: CallStats = CallStats()


@dataclasses.dataclass
class TableInfo:
    name: str
    sampler_options: SelectorOptions
    remover_options: SelectorOptions
    max_size: int
    max_times_sampled: int
    rate_limiter_info: RateLimiterInfo
    signature: Any
    current_size: int = 0
    num_episodes: int = 0  # Not counted: always 0, as the next.
    num_deleted_episodes: int = 0
    num_unique_samples: int = 0
    num_bytes: int = 0  # Of the rows that the table's items need.
    table_worker_time: Any = None  # There is no such worker.


@dataclasses.dataclass(frozen=True)
class Notes:
    """What a table says to its clients beside what the server itself looks at."""

    signature: Any = None
    checkpoints: str = ""  # The folder of them.

    def encode(self):
        return json.dumps({"signature": specs.encode(self.signature), "checkpoints": self.checkpoints})

    @classmethod
    def decode(cls, text):
        found = json.loads(text)
        return cls(specs.decode(found["signature"]), found["checkpoints"])


def _limiter(options, counts):
    return RateLimiterInfo(
        samples_per_insert=options["samples_per_insert"],
        min_size_to_sample=options["min_size"],
        min_diff=options.get("min_diff", -sys.float_info.max),
        max_diff=options.get("max_diff", sys.float_info.max),
        insert_stats=CallStats(counts["inserts"], counts["inserts_waiting"]),
        sample_stats=CallStats(counts["samples"], counts["samples_waiting"]),
    )


def parse(text):
    """TableInfo of each table of what menger_replay_client_info gives, by name."""
    found = json.loads(text)
    counts = {table["name"]: table["info"] for table in found["server"]["tables"]}
    infos = {}
    for table in found["tables"]:
        if not table["open"]:
            continue  # Of another interface.
        info = counts[table["name"]]
        sampler, remover = table["sampler"], table["remover"]
        infos[table["name"]] = TableInfo(
            name=table["name"],
            sampler_options=SelectorOptions(sampler["kind"], sampler["exponent"]),
            remover_options=SelectorOptions(remover["kind"], remover["exponent"]),
            max_size=table["items_max"],
            max_times_sampled=table["times_sampled_max"],
            rate_limiter_info=_limiter(table["rate_limiter"], info),
            signature=Notes.decode(table["notes"]).signature,
            current_size=info["items"],
            num_unique_samples=info["items_sampled"],
            num_bytes=info["bytes"],
        )
    return infos


def tables(text):
    """{name: (index, Notes)} of the open tables of the same text."""
    found = enumerate(json.loads(text)["tables"])
    return {table["name"]: (index, Notes.decode(table["notes"])) for index, table in found if table["open"]}
