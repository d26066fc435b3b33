"""Where tasks and actors run, as ray.util.scheduling_strategies."""

import re
import reprlib

from menger.runtime import members
from menger.runtime.placement import Anywhere, Placement
from menger.runtime.util.placement_group import PlacementGroup


class PlacementGroupSchedulingStrategy(Placement):
    """The option scheduling_strategy of tasks and actors that take what they need of a group; of bundle -1: of any.

    placement_group None: they are in none, whatever their caller is in.
    """

    def __init__(
        self, placement_group, placement_group_bundle_index=-1, placement_group_capture_child_tasks=False
    ):
        if type(placement_group) is PlacementGroup:
            placement_group.placement(placement_group_bundle_index)  # Says what is wrong with the index.
        elif placement_group is not None:
            raise ValueError(f"placement_group is {placement_group!r}; it must be a PlacementGroup, or None for none")
        super().__init__(placement_group, placement_group_bundle_index, bool(placement_group_capture_child_tasks))


class NodeAffinitySchedulingStrategy(Anywhere):
    """On the node of that id, which get_runtime_context().get_node_id() says; with `soft` on another if that is gone."""

    def __init__(self, node_id, soft, **_without_effect):
        self.node_id, self.soft = node_id.hex() if isinstance(node_id, bytes) else node_id, soft

    def resources(self, owner):
        if self.soft:
            return {}
        if owner.place.address:
            if not isinstance(self.node_id, str) or not re.fullmatch("[0-9a-f]{32}", self.node_id):
                raise ValueError(f"node_id is {reprlib.repr(self.node_id)}; it must be the NodeID of one of nodes(), 32 hexadecimal digits")
            return members.asking_for(self.node_id)
        if self.node_id == owner.place.node:
            return {}
        raise ValueError(f"node_id is {reprlib.repr(self.node_id)}; the only node is '{owner.place.node}', and soft=False asks for no other")

    def preferred(self, owner):
        return members.asking_for(self.node_id) if self.soft and owner.place.address else {}


class _Condition:
    def __init__(self, *values):
        self.values = values


class In(_Condition):
    """Of a label: one of these."""


class NotIn(_Condition):
    """None of these."""


class Exists(_Condition):
    """Any."""


class DoesNotExist(_Condition):
    """None."""


class NodeLabelSchedulingStrategy(Anywhere):
    """On nodes of labels, {name: In(values)}: checked, and without effect."""

    def __init__(self, hard, *, soft=None):
        for each in (hard, soft or {}):
            if not isinstance(each, dict) or not all(isinstance(condition, _Condition) for condition in each.values()):
                raise ValueError(f"labels are {each!r}; they must be a dict of In, NotIn, Exists and DoesNotExist")
        self.hard, self.soft = hard, soft or {}
