"""What an environment returns, checked value by value before it is stored: NumPy would spread, cut and wrap in silence.

Numbers that are no numbers (NaN) and codes out of their range pass here: menger looks for them in whole rows, in its own code.
"""

import re

import numpy

from menger.control import Refused
from menger.packages import command_for, is_missing

_SHOWN_MAX = 80  # Characters of a value in an error.


def shown(value):
    """A value for an error: what it is, in one line that is not long."""
    if isinstance(value, numpy.ndarray) and value.size > 8:
        return f"an array of {value.dtype.name} {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."


def stored_value(value, name, shape, dtype):
    """`value` as an array of `dtype`; Refused if it has another shape than `shape`, or would become another number."""
    if type(value) is numpy.ndarray:
        if value.shape == shape and value.dtype is dtype:
            return value
    elif type(value) is int and shape == ():
        return value
    return _converted(value, name, shape, dtype, "its observation space says")


def stored_batch(values, name, shape, dtype):
    """The same for the values of all environments of a batch."""
    if isinstance(values, numpy.ndarray) and values.shape == shape and values.dtype is dtype:
        return values
    return _converted(values, name, shape, dtype, "the batch and its observation space say")


def _converted(value, name, shape, dtype, who):
    if value is None:
        raise Refused(f"its '{name}' is None")
    try:
        array = numpy.asarray(value)
    except ValueError:  # Lists of different lengths.
        raise Refused(f"its '{name}' is {shown(value)}, which is no array of numbers") from None
    if array.dtype.kind not in "fiub":
        raise Refused(f"its '{name}' is {shown(value)}, which is no array of numbers")
    if array.shape != shape:
        raise Refused(f"its '{name}' has shape {array.shape}; {who} {shape}")
    if dtype.kind == "f":
        return array.astype(dtype, copy=False)
    with numpy.errstate(invalid="ignore"):
        whole = array.astype(dtype)
    if array.dtype.kind != "b" and not (whole == array).all():
        place = tuple(int(k) for k in numpy.argwhere(whole != array)[0])
        element = f"element {place} of its '{name}'" if place else f"its '{name}'"
        raise Refused(f"{element} is {array[place].item()!r}, a {array.dtype.name}; it is stored as "
                      f"{dtype.name}, as its observation space has it, and would become {whole[place].item()!r}")  # fmt: skip
    return whole


def reward_of(reward):
    """The reward as a float; Refused where it is not one number."""
    if isinstance(reward, (str, bytes, dict, type(None))) or numpy.ndim(reward) != 0:
        raise Refused(f"its reward is {shown(reward)}; it must be one number")
    try:
        return float(numpy.asarray(reward).item())
    except (TypeError, ValueError):
        raise Refused(f"its reward is {shown(reward)}; it must be one number") from None


def reset_observation(result):
    """The observation of what `reset` returned; Refused where that is not (observation, info)."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result[0]
    old = "" if isinstance(result, tuple) else ", as gym's did before 0.26"
    raise Refused(f"reset returned {shown(result)}{old}; it must return (observation, info), info a dict")


def check_step(result):
    """Refused where `result` is not what `step` must return."""
    if not isinstance(result, (tuple, list)) or len(result) != 5:
        count = f"{len(result)} values" if isinstance(result, (tuple, list)) else shown(result)
        old = ", as gym's did before 0.26 (observation, reward, done, info)" if count == "4 values" else ""
        raise Refused(f"step returned {count}{old}; it must return five: observation, reward, terminated, truncated, info")
    for name, flag in (("terminated", result[2]), ("truncated", result[3])):
        try:
            bool(flag)
        except ValueError:
            raise Refused(f"step returned {shown(flag)} as {name}; it must be true or false") from None


def hint_of(error):
    """What to add to an error that a missing package or the calling conventions of old gym explain; else ""."""
    text = str(error)
    extra = re.search(r"gymnasium\[([\w-]+)\]", text)
    if type(error).__name__ == "DependencyNotInstalled" and extra:
        return f"\nInstall what it needs with: {command_for([extra[0]])}"
    if isinstance(error, ModuleNotFoundError) and error.name and is_missing(error.name.partition(".")[0]):
        return f"\nInstall what it needs with: {command_for([error.name.partition('.')[0]])}"
    if isinstance(error, ValueError) and "not enough values to unpack (expected 5, got 4)" in text:
        return ("\nIts step returns four values, as gym's did before 0.26; five are needed: observation, reward, terminated, "
                "truncated, info.")  # fmt: skip
    if isinstance(error, TypeError) and "unexpected keyword argument 'seed'" in text:
        return ("\nIts reset takes no seed, as gym's did before 0.26; it must be: def reset(self, *, seed=None, options=None), "
                "and return (observation, info).")  # fmt: skip
    return ""
