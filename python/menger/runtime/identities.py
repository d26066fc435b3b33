"""What names jobs, calls, actors and workers: bytes that programs compare and print."""


_WORD = 2**64 - 1
_RESULT = 3  # The kind of a result's id, as values/ids.cc counts.


class Identity(bytes):
    def binary(self):
        return bytes(self)

    def is_nil(self):
        return not any(self)

    def __repr__(self):
        return f"Identity({self.hex()})"


def of_text(text):
    """Of one as the node writes it."""
    return Identity.fromhex(text)


def task_of(result, place):
    """The id of the call whose result number `place` this is: values/ids.cc makes one of the other by steps that can be undone."""
    high, low = (int.from_bytes(result[at : at + 8], "little") for at in (0, 8))
    salt = _mix(place + (_RESULT << 56) + 0x9E3779B97F4A7C15)
    task_high = (_unmix(high ^ salt) - low) & _WORD
    task_low = _unmix((low - task_high) & _WORD) ^ salt
    return Identity(task_high.to_bytes(8, "little") + task_low.to_bytes(8, "little"))


_FACTORS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)


def _mix(value):
    for factor in _FACTORS:
        value = ((value ^ value >> 33) * factor) & _WORD
    return value ^ value >> 33


def _unmix(value):
    value ^= value >> 33
    for factor in reversed(_FACTORS):
        value = (value * pow(factor, -1, 2**64)) & _WORD
        value ^= value >> 33
    return value
