"""The part of ray.util that there is. util.queue, util.multiprocessing, util.joblib, util.state are imported by themselves."""

from menger.runtime.cluster import get_node_ip_address, list_named_actors
from menger.runtime.util import annotations, scheduling_strategies
from menger.runtime.util.actor_pool import ActorPool
from menger.runtime.util.check_serialize import inspect_serializability
from menger.runtime.util.debug import disable_log_once_globally, enable_periodic_logging, log_once
from menger.runtime.util.helpers import as_completed, map_unordered
from menger.runtime.util.placement_group import (
    PlacementGroup,
    get_current_placement_group,
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from menger.runtime.util.serialization import deregister_serializer, register_serializer

__all__ = [
    "ActorPool",
    "PlacementGroup",
    "annotations",
    "as_completed",
    "deregister_serializer",
    "disable_log_once_globally",
    "enable_periodic_logging",
    "get_current_placement_group",
    "get_node_ip_address",
    "get_placement_group",
    "inspect_serializability",
    "list_named_actors",
    "log_once",
    "map_unordered",
    "placement_group",
    "placement_group_table",
    "register_serializer",
    "remove_placement_group",
    "scheduling_strategies",
]
