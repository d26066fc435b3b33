"""What calls of menger.replay raise beside ValueError, TypeError and RuntimeError."""


class ReverbError(Exception):
    """What all of them are."""


class DeadlineExceededError(ReverbError):
    """A call did not come to its end within the time that it was given."""
