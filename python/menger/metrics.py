"""The numbers in `info` at the end of episodes that a recipe asks for (host.metrics)."""

import math

from menger.control import Failure
from menger.values import shown

_PATIENCE = 10  # Episodes without a metric before it is taken for misspelt: some are told now and then only.


class Metrics:
    """Sums of what was told since the last `take`, and a warning for each name that no episode tells."""

    def __init__(self, names):
        self.names = names
        self._sums, self._warnings = {}, {}
        self._missed = dict.fromkeys(names, 0)  # Episodes that ended without; names that were told are gone.

    def hear(self, info, i=None):
        """Keeps what the last step of an episode told: all that is there, or of environment `i` of a batch."""
        for name in self.names:
            value = info.get(name)
            if value is None:
                self._miss(name, info)
                continue
            self._missed.pop(name, None)
            told = None if i is None else info.get("_" + name)  # Which environments of a batch have said it.
            if told is not None and not told[i]:
                continue
            try:
                number = float(value if i is None else value[i])
            except (TypeError, ValueError):
                raise Failure(f"host.metrics names '{name}', which is {value!r} in info; a metric is a number") from None
            if not math.isfinite(number):
                continue
            known = self._sums.setdefault(name, [0.0, 0])
            known[0] += number
            known[1] += 1

    @property
    def any_news(self):
        return bool(self._sums or self._warnings)

    def take(self):
        """What there is to tell, once."""
        said = {"metrics": self._sums, "warnings": self._warnings}
        self._sums, self._warnings = {}, {}
        return said

    def _miss(self, name, info):
        if name not in self._missed:
            return
        self._missed[name] += 1
        if self._missed[name] == _PATIENCE:
            del self._missed[name]
            there = [str(key) for key in info if not str(key).startswith("_")]
            self._warnings[name] = (f"host.metrics names '{name}', which was not in info at the end of the first {_PATIENCE} "
                                    f"episodes; at the end of the last there was {shown(there) if there else 'nothing'}")  # fmt: skip
