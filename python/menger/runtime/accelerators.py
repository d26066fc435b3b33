"""Which GPUs a call or an actor has: the node counts them, and here workers agree on which."""

import contextlib
import fcntl
import json
import os
import time

FILE_VARIABLE = "MENGER_RUNTIME_GPUS"  # Where the workers note who has what.
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PATIENCE_SECONDS = 5.0  # A worker that was killed may take a moment to be gone.
_PAUSE_SECONDS = 0.01

_taken = (0, [])  # What this process has: how much, and the names.


def make_file(count):
    """The file for so many GPUs; None where there is none."""
    if not count:
        return None
    import tempfile

    visible = os.environ.get(_VISIBLE)
    names = visible.split(",") if visible else [str(i) for i in range(int(count))]
    descriptor, path = tempfile.mkstemp(prefix="menger-gpus-")
    with os.fdopen(descriptor, "w") as file:
        json.dump({name: [] for name in names[: int(count)]}, file)
    return path


def variables_without():
    """What calls and actors that have no GPUs find, as in Ray: none are to be seen, unless Ray's own variable says otherwise."""
    return {} if os.environ.get("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO") == "0" else {_VISIBLE: ""}


def drop_file(path):
    if path is not None:
        os.unlink(path)


def take(amount):
    """The names of the GPUs that this process has, whole ones or a part of one, as long as it lives and is told the same amount.

    Libraries ask once in the life of a process what there is. The node gives one that has GPUs no call that needs another amount.
    """
    global _taken
    path = os.environ.get(FILE_VARIABLE)
    if not amount or path is None:
        return []
    if _taken[0] != amount:
        _release(path, _taken[1], _taken[0])
        _taken = amount, _claim(path, amount)
    os.environ[_VISIBLE] = ",".join(_taken[1])
    return _taken[1]


def _claim(path, amount):
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with _holders(path) as holders:
            free = {name: 1.0 - sum(part for process, part in whose if _lives(process)) for name, whose in holders.items()}
            # Parts are taken where most is taken already, so that others stay whole.
            fitting = sorted((room, name) for name, room in free.items() if room + 1e-6 >= min(amount, 1.0))
            count = min(max(1, int(amount)), len(free))  # The user's CUDA_VISIBLE_DEVICES may name fewer.
            if len(fitting) < count and time.monotonic() > end:
                fitting = sorted(((room, name) for name, room in free.items()), reverse=True)  # Who has them waits, and lends them.
            if len(fitting) >= count:
                names = [name for _, name in fitting[:count]]
                for name in names:
                    holders[name].append([os.getpid(), min(amount, 1.0)])
                return names
        time.sleep(_PAUSE_SECONDS)


def _release(path, names, amount):
    with _holders(path) as holders:
        for name in names:
            holders[name].remove([os.getpid(), min(amount, 1.0)])


@contextlib.contextmanager
def _holders(path):
    """[process, part] of all who have some of a GPU, by its name. What is changed in it is kept."""
    with open(path, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        holders = {name: [one for one in whose if _lives(one[0])] for name, whose in json.load(file).items()}
        yield holders
        file.seek(0)
        file.truncate()
        json.dump(holders, file)


def _lives(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
