"""As ray.remote_function."""

from menger.runtime.remoting import RemoteFunction

__all__ = ["RemoteFunction"]
