"""What functions take: wrong arguments are an error of whoever calls, not of the worker that would find out."""

import inspect

_MANY = 1 << 30


class Signature:
    """What inspect knows, without the defaults' values: it travels with the handles of actors."""

    __slots__ = ("_by_name", "_least", "_most", "_names", "_needed", "_others", "_required")

    def __init__(self, function, bound=False):
        parameters = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
        kinds = inspect.Parameter
        in_order = [each for each in parameters if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
        self._names = tuple(each.name if each.kind is kinds.POSITIONAL_OR_KEYWORD else None for each in in_order)
        self._required = sum(each.default is kinds.empty for each in in_order)
        only = [each for each in parameters if each.kind is kinds.KEYWORD_ONLY]
        self._by_name = tuple(each.name for each in only)
        self._needed = tuple(each.name for each in only if each.default is kinds.empty)
        self._others = any(each.kind is kinds.VAR_KEYWORD for each in parameters)
        many = any(each.kind is kinds.VAR_POSITIONAL for each in parameters)
        self._most = _MANY if many else len(in_order)
        self._least = _MANY + 1 if self._needed else self._required  # How many are right without any by name.

    def check(self, name, arguments, keywords):
        """Raises TypeError if a function of this signature cannot be called with these."""
        if keywords or not self._least <= len(arguments) <= self._most:
            self._check_all(name, arguments, keywords)

    def _check_all(self, name, arguments, keywords):
        given = len(arguments)
        if given > self._most:
            raise TypeError(f"{name}() takes {self._most} positional arguments; {given} were given")
        for each in keywords:
            if each in self._names[:given]:
                raise TypeError(f"{name}() got several values for argument '{each}'")
            if not self._others and each not in self._names and each not in self._by_name:
                raise TypeError(f"{name}() got an unexpected keyword argument '{each}'")
        left = enumerate(self._names[given : self._required], given)
        missing = [each or f"number {place + 1}" for place, each in left if each not in keywords]
        missing += [each for each in self._needed if each not in keywords]
        if missing:
            raise TypeError(f"{name}() misses {len(missing)} arguments: {', '.join(missing)}")

    def __reduce__(self):
        return (_restore, tuple(getattr(self, each) for each in Signature.__slots__))


def _restore(*values):
    made = Signature.__new__(Signature)
    for each, value in zip(Signature.__slots__, values):
        setattr(made, each, value)
    return made


class _Anything(Signature):
    """That of what inspect knows nothing about."""

    __slots__ = ()

    def __init__(self):
        pass

    def check(self, name, arguments, keywords):
        pass

    def __reduce__(self):
        return "ANYTHING"


ANYTHING = _Anything()


def signature_of(function, bound=False):
    """`bound`: without the first parameter, self."""
    try:
        return Signature(function, bound)
    except (TypeError, ValueError):
        return ANYTHING
