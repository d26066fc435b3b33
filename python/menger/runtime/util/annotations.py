"""Marks of how stable a name is, as ray.util.annotations. They change nothing but documentation, and what they warn of."""

import functools
import inspect
import warnings


class RayDeprecationWarning(DeprecationWarning):
    """Something that is marked as deprecated was used."""


def PublicAPI(*target, stability="stable", api_group="Others"):
    if stability not in ("stable", "beta", "alpha"):
        raise ValueError(f"stability is {stability!r}; it must be 'stable', 'beta' or 'alpha'")
    return _marked(target, "" if stability == "stable" else f"**{stability.capitalize()}:** this may change.")


def DeveloperAPI(*target):
    return _marked(target, "**For developers:** this may change.")


def Deprecated(*target, message="Do not use it in new programs.", warning=False):
    """With `warning` whoever uses it is warned, once a place."""
    if target:
        return _marked(target, f"**Deprecated:** {message}")
    return lambda each: _warning(_marked((each,), f"**Deprecated:** {message}"), message, warning)


def _marked(target, text):
    if not target:
        return lambda each: _marked((each,), text)
    each = target[0]
    if text:
        each.__doc__ = f"{inspect.cleandoc(each.__doc__ or '')}\n\n{text}".strip()
    return each


def _warning(target, message, wanted):
    if not wanted:
        return target
    if inspect.isclass(target):
        target.__init__ = _warning(target.__init__, message, True)
        return target

    @functools.wraps(target)
    def warn(*arguments, **keywords):
        warnings.warn(f"{target.__qualname__}: {message}", RayDeprecationWarning, stacklevel=2)
        return target(*arguments, **keywords)

    return warn
