"""As ray.cloudpickle: what functions and classes of the program are pickled by."""

import cloudpickle as _all


def __getattr__(name):
    return getattr(_all, name)
