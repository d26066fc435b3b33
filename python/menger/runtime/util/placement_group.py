"""Resources that tasks and actors need together, as ray.util.placement_group."""

import array

from menger.runtime import current, remoting
from menger.runtime.placement import Placement

# menger::PlacementStrategy.
_STRATEGIES = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
_NAMES = {"CPU": "cpu", "GPU": "gpu"}


class PlacementGroup:
    """Resources that are set aside, all bundles at once. It lives while somebody refers to it, tasks and actors in it too."""

    def __init__(self, reference, bundle_specs):
        self.reference, self.bundle_specs = reference, bundle_specs

    @property
    def id(self):
        return self.reference.hex()

    @property
    def bundle_count(self):
        return len(self.bundle_specs)

    def ready(self):
        """An ObjectRef of this group, there once its resources are."""
        return remoting.remote(num_cpus=0, scheduling_strategy=Placement(self))(_itself).remote(self)

    def wait(self, timeout_seconds=30):
        """Whether its resources are there in time. Raises what is wrong with a group that can never have them."""
        owner = current.session()
        if not owner.wait(array.array("Q", [self.reference.handle]), 1, timeout_seconds)[0]:
            return False
        owner.raise_failure(self.reference)
        return True

    def __eq__(self, other):
        return type(other) is PlacementGroup and self.reference == other.reference

    def __hash__(self):
        return hash(self.reference)

    def __repr__(self):
        return f"PlacementGroup({self.id}, {self.bundle_specs})"

    def __reduce__(self):
        return (PlacementGroup, (self.reference, self.bundle_specs))


def _itself(group):
    return group


def placement_group(bundles, strategy="PACK", name="", lifetime=None):
    """Asks for resources that are needed together, as [{"CPU": 1}, {"CPU": 1, "GPU": 1}]; returns at once."""
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy is {strategy!r}; it must be one of {', '.join(_STRATEGIES)}")
    if lifetime not in (None, "detached"):
        raise ValueError(f"lifetime is {lifetime!r}; it must be None or 'detached'")
    if not isinstance(bundles, list) or not bundles or not all(isinstance(bundle, dict) for bundle in bundles):
        raise ValueError(f"bundles are {bundles!r}; they must be a list of dicts, and not empty")
    owner = current.session()
    texts = [_text_of(bundle) for bundle in bundles]
    reference = owner.reserve(texts, _STRATEGIES.index(strategy), name or "placement group")
    if lifetime == "detached":
        owner.kept.append(reference)
    return PlacementGroup(reference, [dict(bundle) for bundle in bundles])


def remove_placement_group(group):
    """Frees its resources. Tasks and actors in it end, also those that run."""
    if type(group) is not PlacementGroup:
        raise ValueError(f"remove_placement_group takes a PlacementGroup; this is {group!r}")
    current.session().cancel(group.reference, force=False)


def _text_of(bundle):
    return " ".join(f"{_NAMES.get(name, name)}={float(amount)!r}" for name, amount in bundle.items())
