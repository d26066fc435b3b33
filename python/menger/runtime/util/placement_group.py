"""Resources that tasks and actors need together, as ray.util.placement_group."""

import array
import time
import warnings

from menger.runtime import current, exceptions, feasibility, identities, members, options, remoting, runtime_context
from menger.runtime.identities import Identity
from menger.runtime.placement import Placement

# menger::PlacementStrategy.
VALID_PLACEMENT_GROUP_STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_IN_BYTES = ("memory", "object_store_memory")  # The latter has no effect.
_NAMES = {"CPU": "cpu", "GPU": "gpu"}


class PlacementGroup:
    """Resources that are set aside, all bundles at once. It lives while somebody refers to it, tasks and actors in it too."""

    def __init__(self, reference, bundle_specs, name="", strategy="", is_never=False):
        """`is_never`: the machine does not have what it needs; then the reference is that of a call which waits for ever."""
        self.reference, self.bundle_specs = reference, bundle_specs
        self.name, self.strategy, self.is_never = name, strategy, is_never
        self.asked_at, self.creation_ms = time.monotonic(), 0.0

    @property
    def id(self):
        return Identity(self.reference.binary())

    @property
    def bundle_count(self):
        return len(self.bundle_specs)

    def placement(self, bundle=-1, captures=False):
        """Where what is to run in this group goes."""
        if not -1 <= bundle < self.bundle_count:
            raise ValueError(f"the placement group bundle index {bundle} is invalid; it must lie between -1 and {self.bundle_count - 1}")
        return Placement(self, bundle, captures)

    @property
    def is_empty(self):
        return False

    def ready(self):
        """An ObjectRef of this group, there once its resources are."""
        if self.is_never:
            return remoting.remote(num_cpus=0, placement_group=None)(_itself).remote(self.reference)
        return remoting.remote(num_cpus=0, scheduling_strategy=Placement(self))(_itself).remote(self)

    def wait(self, timeout_seconds=30):
        """Whether its resources are there in time."""
        owner = current.session()
        if not owner.wait(array.array("Q", [self.reference.handle]), 1, options.seconds(timeout_seconds))[0]:
            return False
        try:
            owner.raise_failure(self.reference)
        except exceptions.RayError as error:
            warnings.warn(f"the placement group is not there: {error}", stacklevel=2)
            return False
        return True

    def __eq__(self, other):
        return type(other) is PlacementGroup and self.reference == other.reference

    def __hash__(self):
        return hash(self.reference)

    def __repr__(self):
        return f"PlacementGroup({self.id.hex()}, {self.bundle_specs})"

    def __reduce__(self):
        return (PlacementGroup, (self.reference, self.bundle_specs, self.name, self.strategy, self.is_never))


def _itself(group):
    return group


def placement_group(bundles, strategy="PACK", name="", lifetime=None):
    """Asks for resources that are needed together, as [{"CPU": 1}, {"CPU": 1, "GPU": 1}]; returns at once."""
    validate_placement_group(bundles, strategy, lifetime)
    owner = current.session()
    lack = feasibility.lacking_for_bundles(bundles, strategy, owner.place.totals)
    if lack:
        feasibility.warn(f"placement group '{name}'", lack)
        reference = remoting.remote(num_cpus=0, name=name or "placement group")(_itself).remote(feasibility.never(owner))
    else:
        texts = [_text_of(bundle, owner) for bundle in bundles]
        reference = owner.reserve(texts, VALID_PLACEMENT_GROUP_STRATEGIES.index(strategy), name or "placement group")
    if lifetime == "detached":
        owner.kept.append(reference)
    made = PlacementGroup(reference, [dict(bundle) for bundle in bundles], name, strategy, bool(lack))
    owner.groups[made.id] = made
    return made


def validate_placement_group(bundles, strategy="PACK", lifetime=None):
    """Raises ValueError if there can be no such group."""
    if strategy not in VALID_PLACEMENT_GROUP_STRATEGIES:
        raise ValueError(f"Invalid placement group strategy {strategy!r}; it must be one of {', '.join(VALID_PLACEMENT_GROUP_STRATEGIES)}")
    if lifetime not in (None, "detached"):
        raise ValueError(f"lifetime is {lifetime!r}; it must be None or 'detached'")
    if not isinstance(bundles, (list, tuple)):
        raise ValueError(f"bundles are {bundles!r}; they must be a list")
    if not bundles:
        raise ValueError("bundles are []; they must be a non-empty list")
    for place, bundle in enumerate(bundles):
        if not isinstance(bundle, dict) or not all(isinstance(name, str) for name in bundle):
            raise ValueError(f"bundles are {bundles!r}; they must be resource dictionaries, as [{{'CPU': 1}}]")
        for name, amount in bundle.items():
            if name == "bundle":
                raise ValueError("a resource of a placement group cannot be named 'bundle': its bundles are")
            (options.check_number if name in _IN_BYTES else options.check_amount)(f"bundles[{place}][{name!r}]", amount)
        if not any(bundle.values()):
            raise ValueError(f"bundles[{place}] is {bundle!r}, which has only 0 values: a bundle of a placement group has nothing in it")


def remove_placement_group(group):
    """Frees its resources. Tasks and actors in it end, also those that run."""
    if type(group) is not PlacementGroup:
        raise ValueError(f"remove_placement_group takes a PlacementGroup; this is {group!r}")
    current.session().cancel(group.reference, force=False)


def get_placement_group(name):
    """The group of that name, if this process has made it and still refers to it."""
    for group in list(current.session().groups.values()):
        if name and group.name == name and _state(group) != "REMOVED":
            return group
    raise ValueError(f"no placement group named '{name}' is here")


def get_current_placement_group():
    """That in which the call or the actor that asks runs; None if in none."""
    found = runtime_context.current_group()
    return found and PlacementGroup(*found)


def capture():
    """Where what is called by a call that captures goes: into its own group, and what that calls, too."""
    return get_current_placement_group().placement(captures=True)


def placement_group_table(placement_group=None):
    """What there is to know of a group, or by their ids of all that this process has made."""
    known = _known()
    if placement_group is not None:
        return _entry(placement_group, known)
    return {group.id.hex(): _entry(group, known) for group in list(current.session().groups.values())}


def _known():
    """What the program's own process says of groups, by their ids; nothing on another machine."""
    owner = current.session()
    if owner.driver is None:
        return {}
    return {identities.of_text(each["id"]): each for each in owner.ask("status")["groups"]}


def _entry(group, known):
    state, nodes = _state(group), [""] * group.bundle_count
    if state == "CREATED" and group.id in known:
        own = current.session().place.node
        nodes = ["" if node is None else node or own for node in known[group.id]["nodes"]]
        if known[group.id]["state"] == "moving":
            state = "RESCHEDULING"
    return {
        "placement_group_id": group.id.hex(),
        "name": group.name,
        "bundles": {place: {name: float(amount) for name, amount in bundle.items()} for place, bundle in enumerate(group.bundle_specs)},
        "bundles_to_node_id": dict(enumerate(nodes)),
        "strategy": group.strategy,
        "state": state,
        "stats": _stats(group, state),
    }


_SCHEDULING_STATES = {"PENDING": "NO_RESOURCES", "CREATED": "FINISHED", "REMOVED": "REMOVED", "RESCHEDULING": "SCHEDULING_STARTED"}


def _stats(group, state):
    """Of how it came to be. When it did this process notices as it asks."""
    since = (time.monotonic() - group.asked_at) * 1000
    if state == "CREATED" and not group.creation_ms:
        group.creation_ms = since
    return {
        "end_to_end_creation_latency_ms": group.creation_ms,
        "scheduling_latency_ms": group.creation_ms,
        "scheduling_attempt": 1,
        "highest_retry_delay_ms": 0.0,
        "scheduling_state": "INFEASIBLE" if group.is_never and state == "PENDING" else _SCHEDULING_STATES[state],
    }


def _state(group):
    owner = current.session()
    if not owner.wait(array.array("Q", [group.reference.handle]), 1, 0)[0]:
        return "PENDING"
    return "REMOVED" if owner.has_failed(group.reference) else "CREATED"


def _text_of(bundle, owner):
    named = {_NAMES.get(name, name): amount for name, amount in bundle.items() if name not in _IN_BYTES}
    if owner.place.address:  # Whose nodes do not count memory.
        return options.amounts(members.that_is_meant(named, owner)).decode()
    return options.amounts(named, bundle.get("memory")).decode()
