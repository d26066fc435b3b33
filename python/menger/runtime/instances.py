"""What a worker does with the actor that lives there, beside the calls of its methods."""

from menger.runtime import actor, failures


def shown(instance):
    """How the lines of an actor begin that says so itself."""
    try:
        return repr(instance).replace("\n", " ")
    except Exception:
        return type(instance).__name__


def shut_down(instance):
    end = getattr(instance, "__ray_shutdown__", None)
    if callable(end):
        failures.shown(end)


def _exit_actor(_instance):
    raise actor.ActorExit


# Methods that every actor has.
OF_ALL_ACTORS = {
    actor.READY: lambda instance: True,
    actor.TERMINATE: _exit_actor,
    actor.CALL: lambda instance, function, *arguments, **keywords: function(instance, *arguments, **keywords),
}
