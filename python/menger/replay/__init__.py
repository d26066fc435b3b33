"""Replay with Reverb's names, for NumPy: `import menger.replay as reverb` (docs/replay.md).

    server = reverb.Server([reverb.Table.queue("queue", 100)])
    client = reverb.Client(f"localhost:{server.port}")
    client.insert([0, 1], {"queue": 1.0})
    [sample] = client.sample("queue")

A server lives in the process that makes it; clients are in any process of the host, and read what they draw in its memory. It
needs libmenger_replay.so and NumPy.
"""

from menger.replay import checkpointers, errors, platform, rate_limiters
from menger.replay import item_selectors as selectors
from menger.replay import structured_writer as structured
from menger.replay.client import Client
from menger.replay.datasets import TimestepDataset, TrajectoryDataset
from menger.replay.errors import DeadlineExceededError, ReverbError
from menger.replay.legacy_writer import Writer
from menger.replay.replay_sample import ReplaySample, SampleInfo
from menger.replay.server import Server, Table
from menger.replay.specs import TensorSpec
from menger.replay.trajectory_writer import TrajectoryColumn, TrajectoryWriter

__all__ = [
    "Client",
    "DeadlineExceededError",
    "ReplaySample",
    "ReverbError",
    "SampleInfo",
    "Server",
    "Table",
    "TensorSpec",
    "TimestepDataset",
    "TrajectoryColumn",
    "TrajectoryDataset",
    "TrajectoryWriter",
    "Writer",
    "checkpointers",
    "errors",
    "platform",
    "rate_limiters",
    "selectors",
    "structured",
]
