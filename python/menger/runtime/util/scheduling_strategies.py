"""Where tasks and actors run, as ray.util.scheduling_strategies."""

from menger.runtime.placement import Placement
from menger.runtime.util.placement_group import PlacementGroup


class PlacementGroupSchedulingStrategy(Placement):
    """The option scheduling_strategy of tasks and actors that take what they need of a group; of bundle -1: of any."""

    def __init__(
        self, placement_group, placement_group_bundle_index=-1, placement_group_capture_child_tasks=False
    ):
        if type(placement_group) is not PlacementGroup:
            raise ValueError(f"placement_group is {placement_group!r}; it must be a PlacementGroup")
        if not -1 <= placement_group_bundle_index < placement_group.bundle_count:
            raise ValueError(
                f"placement_group_bundle_index is {placement_group_bundle_index}; it must lie between -1 and"
                f" {placement_group.bundle_count - 1}"
            )
        if placement_group_capture_child_tasks:
            raise ValueError("placement_group_capture_child_tasks is not supported: name the group in each call")
        super().__init__(placement_group, placement_group_bundle_index)
        self.placement_group_capture_child_tasks = False
