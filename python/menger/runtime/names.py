"""Names of actors. Each namespace has its own; the library knows one name for both, by which a cluster's programs find each other's."""

from menger.runtime import options

_BETWEEN = " @"  # name @namespace; those of the job's own namespace have their name alone.


def full_name(name, namespace, owner):
    """What the library calls the actor of that name."""
    if namespace is None:
        namespace = owner.namespace
    options.check({"namespace": namespace}, options.ACTOR_OPTIONS)
    if _BETWEEN in name:
        raise ValueError(f"the name of an actor is '{name}'; it must not contain '{_BETWEEN}'")
    return name if owner.own_namespace and namespace == owner.namespace else f"{name}{_BETWEEN}{namespace}"


def parts(full, owner):
    """(name, namespace)."""
    name, _, namespace = full.partition(_BETWEEN)
    return name, namespace or owner.namespace
