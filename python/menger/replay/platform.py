"""Where Reverb has its checkpointers."""

from menger.replay import checkpointers as checkpointers_lib

__all__ = ["checkpointers_lib"]
