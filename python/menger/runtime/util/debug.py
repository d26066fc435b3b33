"""As the part of ray.util.debug that programs use."""

import time

_next = {}  # When each key may be logged again; one that is logged once: never.
_NEVER = float("inf")
_disabled, _period = False, _NEVER


def log_once(key):
    """Whether this is the first time that this key is asked for."""
    now = time.monotonic()
    if _disabled or now < _next.get(key, 0):
        return False
    _next[key] = now + _period
    return True


def disable_log_once_globally():
    global _disabled
    _disabled = True


def enable_periodic_logging(period=60.0):
    """From now on each key once in so many seconds."""
    global _disabled, _period
    _disabled, _period = False, period
