"""The part of ray.util that there is."""

from menger.runtime.util import scheduling_strategies
from menger.runtime.util.placement_group import PlacementGroup, placement_group, remove_placement_group

__all__ = ["PlacementGroup", "placement_group", "remove_placement_group", "scheduling_strategies"]
