"""What needs more than the machine has. As in Ray, where another machine may come, it waits; here none comes, so a warning says it."""

import os
import warnings

from menger.runtime import library, node, resource_names

_KEYWORD = "menger_waits_for"
_ROOM = 1e-6  # For sums of parts.


def lacking(needed, totals):
    """What of {resource: amount} the machine never has, as a text; "" if nothing. `totals`: None of a cluster, which others may join."""
    if totals is None:
        return ""
    return ", ".join(
        f"{resource_names.shortened(name)}: needs {amount:g}, there is {totals.get(name, 0):g}"
        for name, amount in needed.items()
        if amount > totals.get(name, 0) + _ROOM
    )


def lacking_for_bundles(bundles, strategy, totals):
    """The same of a placement group."""
    if totals is None:
        return ""
    if strategy == "STRICT_SPREAD" and len(bundles) > 1:
        return f"its {len(bundles)} bundles are to be each on a node of its own, and there is one node"
    names = {name for bundle in bundles for name in bundle if name != "object_store_memory"}  # Which has no effect.
    return lacking({name: sum(bundle.get(name, 0) for bundle in bundles) for name in sorted(names)}, totals)


def needed_by(told):
    """{resource: amount} of the options of a call or an actor."""
    needed = {"CPU": told["num_cpus"], "GPU": told["num_gpus"], "memory": told["memory"] or 0, **(told["resources"] or {})}
    return {name: amount for name, amount in needed.items() if amount}


def without_nodes(resources):
    """Less those by which Ray's programs name a node: here it is this one, and has room."""
    return {name: amount for name, amount in (resources or {}).items() if name not in node.RESOURCES}


def warn(what, lack):
    warnings.warn(f"{what} waits for what the machine does not have: {lack}", stacklevel=2)


def never(owner):
    """A reference on what is never there."""
    return owner.adopt(os.urandom(library.ID_BYTES))


def with_wait(keywords, waits_for):
    """The keywords of a call that, beside what it is given, waits for a reference."""
    return keywords if waits_for is None else {**keywords, _KEYWORD: waits_for}
