"""How items are chosen: to be sampled, or to be removed."""

import functools


class Selector:
    """`kind` is the number of menger::SelectorKind, `exponent` that of priorities."""

    kind = None
    exponent = 1.0

    def __repr__(self):
        return f"{type(self).__name__}()"


class Uniform(Selector):
    """All items alike."""

    kind = 0


class Fifo(Selector):
    """The oldest item."""

    kind = 1


class Lifo(Selector):
    """The newest item."""

    kind = 2


class Heap(Selector):
    """The item of the lowest priority, or of the highest; among equals the oldest."""

    def __init__(self, min_heap=True):
        self.min_heap = bool(min_heap)
        self.kind = 3 if min_heap else 4

    def __repr__(self):
        return "MinHeap()" if self.min_heap else "MaxHeap()"


class Prioritized(Selector):
    """Items in proportion to priority ** priority_exponent."""

    kind = 5

    def __init__(self, priority_exponent):
        if not priority_exponent >= 0:
            raise ValueError(f"priority_exponent is {priority_exponent}; it must be at least 0")
        self.exponent = float(priority_exponent)

    @property
    def priority_exponent(self):
        return self.exponent

    def __repr__(self):
        return f"Prioritized({self.exponent})"


MinHeap = functools.partial(Heap, True)
MaxHeap = functools.partial(Heap, False)


def of_kind(kind, exponent):
    """The selector of a number of menger::SelectorKind."""
    if kind == Prioritized.kind:
        return Prioritized(exponent)
    return [Uniform, Fifo, Lifo, MinHeap, MaxHeap][kind]()
