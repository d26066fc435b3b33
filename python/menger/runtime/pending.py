"""The option max_pending_calls of actors: how many calls by one handle may be not done."""

import array

from menger.runtime import exceptions


class Pending:
    def __init__(self, limit):
        self.limit = limit
        self._references = []  # One of each call, until it is seen to be done.

    def check(self, session):
        """Raises PendingCallsLimitExceeded where one more would be too many."""
        if len(self._references) < self.limit:
            return
        flags = session.wait(array.array("Q", [each.handle for each in self._references]), len(self._references), 0)
        self._references = [each for each, done in zip(self._references, flags) if not done]
        if len(self._references) >= self.limit:
            raise exceptions.PendingCallsLimitExceeded(f"{self.limit} calls of the actor are not done, as many as its max_pending_calls")

    def add(self, reference):
        self._references.append(reference)
