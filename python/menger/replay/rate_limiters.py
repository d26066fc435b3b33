"""How fast a table may be sampled against how fast it is filled (docs/replay.md).

With d = inserts * samples_per_insert - samples, items may be sampled while there are min_size_to_sample of them and d stays at
or above min_diff, and inserted while there are fewer or d stays at or below max_diff.
"""

import logging
import numbers
import sys

_log = logging.getLogger(__name__)


def _check_min_size(min_size_to_sample):
    if min_size_to_sample < 1:
        raise ValueError(f"min_size_to_sample ({min_size_to_sample}) must be at least 1")


class RateLimiter:
    def __init__(self, samples_per_insert, min_size_to_sample, min_diff, max_diff):
        _check_min_size(min_size_to_sample)
        if samples_per_insert <= 0:
            raise ValueError(f"samples_per_insert ({samples_per_insert}) must be greater than 0")
        self.samples_per_insert = float(samples_per_insert)
        self.min_size_to_sample = int(min_size_to_sample)
        self.min_diff = float(min_diff)
        self.max_diff = float(max_diff)

    def __repr__(self):
        return (
            f"RateLimiter(samples_per_insert={self.samples_per_insert}, min_size_to_sample={self.min_size_to_sample},"
            f" min_diff={self.min_diff}, max_diff={self.max_diff})"
        )


class MinSize(RateLimiter):
    """Samples wait while there are fewer items."""

    def __init__(self, min_size_to_sample):
        super().__init__(1.0, min_size_to_sample, -sys.float_info.max, sys.float_info.max)


class SampleToInsertRatio(RateLimiter):
    """Items are sampled `samples_per_insert` times on average.

    `error_buffer` is how far d may be from samples_per_insert * min_size_to_sample, or a pair: the bounds of d.
    """

    def __init__(self, samples_per_insert, min_size_to_sample, error_buffer):
        if samples_per_insert <= 0:
            raise ValueError(f"samples_per_insert ({samples_per_insert}) must be greater than 0")
        _check_min_size(min_size_to_sample)
        middle = samples_per_insert * min_size_to_sample
        if isinstance(error_buffer, numbers.Real):
            min_diff, max_diff = middle - error_buffer, middle + error_buffer
        else:
            min_diff, max_diff = error_buffer
        least = max(1.0, samples_per_insert)
        if max_diff - min_diff < 2 * least:
            raise ValueError(
                f"error_buffer ({error_buffer}) leaves d a window of {max_diff - min_diff}; it must have at least"
                f" {2 * least}, or neither samples nor inserts may ever go on"
            )
        if min_diff > middle:
            raise ValueError(
                f"error_buffer ({error_buffer}) asks for d of {min_diff} at least, but when there are"
                f" {min_size_to_sample} items it is {middle}, and nothing could go on"
            )
        if max_diff < middle:
            _log.warning(
                "error_buffer %s ends below %s, which d is when there are %s items: who inserts and samples by turns will wait for ever",
                error_buffer,
                middle,
                min_size_to_sample,
            )
        super().__init__(samples_per_insert, min_size_to_sample, min_diff, max_diff)


class Queue(RateLimiter):
    """Of Table.queue: each item is sampled once, and at most `size` wait for that."""

    def __init__(self, size):
        super().__init__(1.0, 1, 0.0, size)


class Stack(RateLimiter):
    """Of Table.stack."""

    def __init__(self, size):
        super().__init__(1.0, 1, 0.0, size)
