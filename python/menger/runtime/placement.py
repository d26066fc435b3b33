"""What a call of a function or the making of an actor is told of where it shall run."""

from menger.runtime import feasibility

ANY_GROUP = "default"  # As placement_group: that of the caller, if it captures what it calls; None: no group.


class Anywhere:
    """What says of the nodes of a cluster which it may be."""

    def resources(self, _owner):
        """What a call asks for to be there, {resource: amount}. Raises what is wrong with it for the nodes that a session has."""
        return {}

    def preferred(self, _owner):
        """Likewise, but it goes elsewhere where no node has that."""
        return {}


class Placement:
    """In a placement group: it takes what it needs of one bundle, or with -1 of any.

    `captures`: what the call calls, or the actor's methods call, runs in the group, too, where it is told nothing else.
    """

    def __init__(self, group, bundle=-1, captures=False):
        self.placement_group, self.placement_group_bundle_index = group, bundle
        self.placement_group_capture_child_tasks = captures

    def check_fits(self, definition, told):
        """Raises ValueError where no bundle that is meant can ever hold it."""
        needed = feasibility.needed_by(told)
        bundles, index = self.placement_group.bundle_specs, self.placement_group_bundle_index
        meant = bundles if index == -1 else [bundles[index]]
        if not any(all(amount <= bundle.get(name, 0) for name, amount in needed.items()) for bundle in meant):
            shown = [{name: float(amount) for name, amount in bundle.items()} for bundle in meant]
            name = getattr(definition.target, "__qualname__", definition.name)
            raise ValueError(
                f"Cannot schedule {name} with the placement group because the resource request {needed}"
                f" cannot fit into any bundles for the placement group, {shown}."
            )

    def call_options(self):
        """As library.CallOptions says it."""
        group = self.placement_group
        return {
            "group": group.reference.handle,
            "group_bundles": group.bundle_count,
            "bundle": self.placement_group_bundle_index,
        }


def among_nodes(told, owner):
    """(what it asks for to be where it is to be, what it prefers, whether the nodes of a cluster do such calls in turn)."""
    strategy = told["scheduling_strategy"]
    if isinstance(strategy, Anywhere):
        return strategy.resources(owner), strategy.preferred(owner), False
    return {}, {}, strategy == "SPREAD" and bool(owner.place.address)


def of(told, captured):
    """The Placement that options ask for. `captured`: where the calls of whoever asks go if they say nothing."""
    strategy, group = told["scheduling_strategy"], told["placement_group"]
    index, captures = told["placement_group_bundle_index"], told["placement_group_capture_child_tasks"]
    if strategy is not None or group is None:
        return strategy if isinstance(strategy, Placement) and strategy.placement_group is not None else None
    if group == ANY_GROUP:
        return captured
    return group.placement(index, bool(captures))
