"""Which cluster init joins."""

import os

from menger.runtime import library

LOCAL = "local"  # None: the runtime is this process and its workers.
_VARIABLE, _RAYS_VARIABLE = "MENGER_ADDRESS", "RAY_ADDRESS"
# What joining fails with, where the cluster is not there or would not have this process.
_NOT_JOINED = (library.UNAVAILABLE, library.DEADLINE_EXCEEDED, library.FAILED_PRECONDITION)


def resolved(address):
    """"HOST:PORT" of the cluster's head, or LOCAL, for what init was given."""
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address is {address!r}; it must be a text as 'HOST:PORT', 'auto' or 'local'")
    if address == "auto":
        address = os.environ.get(_VARIABLE) or os.environ.get(_RAYS_VARIABLE)
        if not address:
            raise ConnectionError(
                f"address is 'auto', and neither {_VARIABLE} nor {_RAYS_VARIABLE} says where a cluster is: `menger node --head` begins one"
            )
    address = address or os.environ.get(_VARIABLE) or LOCAL
    if "://" in address:
        raise ValueError(f"address is '{address}'; there is no Ray Client: name the head of a cluster as 'HOST:PORT', without '://'")
    return address


def check_brings_nothing(address, **told):
    """Raises ValueError for what the nodes of a cluster have, and a program that joins it does not."""
    for name, value in told.items():
        if value is not None:
            raise ValueError(
                f"{name} is {value!r}, and this program joins the cluster at {address}, whose nodes say what they have:"
                f" leave {name} out, or give address='{LOCAL}'"
            )


def failure(functions, address):
    """What a runtime that could not be opened raises."""
    if address != LOCAL and functions.error_code() in _NOT_JOINED:
        return ConnectionError(functions.error().decode(errors="replace"))
    return functions.failure()
