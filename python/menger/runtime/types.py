"""As ray.types."""

from menger.runtime.session import ObjectRef

__all__ = ["ObjectRef"]
