"""Results as they come, as ray.util.as_completed and ray.util.map_unordered."""

from menger.runtime import calls


def as_completed(refs, *, chunk_size=10, yield_obj_refs=False):
    """The values of references, those that are ready first; with `yield_obj_refs` the references.

    `chunk_size`: how many are waited for, and fetched, together.
    """
    _check_size("chunk_size", chunk_size)
    left = list(refs)
    while left:
        done, left = calls.wait(left, num_returns=min(chunk_size, len(left)))
        yield from done if yield_obj_refs else calls.get(done)


def map_unordered(fn, items, *, backpressure_size=100, chunk_size=10, yield_obj_refs=False):
    """What a remote function or method gives for each item, in the order in which that is there.

    So many calls as `backpressure_size` are under way at once; None: all.
    """
    _check_size("chunk_size", chunk_size)
    if backpressure_size is not None and backpressure_size < chunk_size:
        raise ValueError(f"backpressure_size is {backpressure_size}; it must be at least chunk_size, which is {chunk_size}")
    return _mapped(fn, iter(items), backpressure_size, chunk_size, yield_obj_refs)


def _mapped(fn, items, backpressure_size, chunk_size, yield_obj_refs):
    running = []
    for item in items:
        running.append(fn.remote(item))
        if len(running) == backpressure_size:
            done, running = calls.wait(running, num_returns=chunk_size)
            yield from done if yield_obj_refs else calls.get(done)
    yield from as_completed(running, chunk_size=chunk_size, yield_obj_refs=yield_obj_refs)


def _check_size(name, size):
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"{name} is {size!r}; it must be a whole number from 1 on")
