"""Names of resources."""

BYTES_MAX = 65_000  # As in src/menger/runtime/values/resources.cc.
_SHOWN = 100


def shortened(name):
    """For people to read."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}... ({len(name.encode())} bytes)"
