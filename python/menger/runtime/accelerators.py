"""Which GPUs and other accelerators a call or an actor has: the node counts them, and here workers agree on which."""

import contextlib
import fcntl
import json
import os
import time

from menger.runtime import current, members

FILE_VARIABLE = "MENGER_RUNTIME_ACCELERATORS"  # Where the workers note who has what.
GPU = "GPU"
# The resources that are devices, by their names in Ray, and the variables that say which of them a process sees.
VISIBLE = {
    GPU: "CUDA_VISIBLE_DEVICES",
    "TPU": "TPU_VISIBLE_CHIPS",
    "neuron_cores": "NEURON_RT_VISIBLE_CORES",
    "HPU": "HABANA_VISIBLE_MODULES",
    "NPU": "ASCEND_RT_VISIBLE_DEVICES",
    "RBLN": "RBLN_DEVICES",
}
_PATIENCE_SECONDS = 5.0  # A worker that was killed may take a moment to be gone.
_PAUSE_SECONDS = 0.01

_OF_NODE = "of the node"  # Instead of the file: it is the node's, whatever program's workers these are.
_HIDDEN_VARIABLE = "MENGER_RUNTIME_HIDDEN"
_visible_to_node = {}  # What variables said before they were hidden.
_kept = (0, [])  # The GPUs that this process has: how much, and their names.


def counted(num_gpus, resources):
    """{name: amount} of what of all this is an accelerator."""
    given = {GPU: num_gpus or 0, **(resources or {})}
    return {name: given[name] for name in VISIBLE if given.get(name)}


def check_whole(name, amount):
    if amount > 1 and amount != int(amount):
        raise ValueError(f"{name} is {amount}; it must be a whole number, or less than 1 for a part of one")


def make_file(amounts):
    """The file for so many of each; None where there is none."""
    if not amounts:
        return None
    import tempfile

    found = {name: {each: [] for each in _names(name, int(amount))} for name, amount in amounts.items()}
    descriptor, path = tempfile.mkstemp(prefix="menger-accelerators-")
    with os.fdopen(descriptor, "w") as file:
        json.dump(found, file)
    return path


def _names(name, count):
    visible = _visible_to_node.get(VISIBLE[name], os.environ.get(VISIBLE[name]))
    return (visible.split(",") if visible else [str(i) for i in range(count)])[:count]


def variables_without(amounts):
    """What calls and actors that have none find, as in Ray: none are to be seen, unless Ray's own variable says otherwise."""
    if os.environ.get("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO") == "0":
        return {}
    return dict.fromkeys([VISIBLE[GPU], *(VISIBLE[name] for name in amounts)], "")


def variables_on_nodes(given):
    """The same for workers on nodes of a cluster, which has these devices as its nodes say. `given`: variables that workers have."""
    found = {FILE_VARIABLE: _OF_NODE}
    if VISIBLE[GPU] not in given and os.environ.get("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO") != "0":
        found[_HIDDEN_VARIABLE] = VISIBLE[GPU]
    return found


def hide():
    """In a worker that begins: what variables_on_nodes has said is not to be seen."""
    variable = os.environ.pop(_HIDDEN_VARIABLE, "")
    if variable:
        _visible_to_node[variable] = os.environ.get(variable)
        os.environ[variable] = ""


def _file_of_node():
    """That all workers of the node share, made by the first of them."""
    import tempfile

    opened = current.session()
    path = os.path.join(tempfile.gettempdir(), f"menger-accelerators-{opened.place.node}")
    if os.path.exists(path):
        return path
    amounts = {name: amount for name, amount in members.resources(members.own(opened)).items() if name in VISIBLE}
    made = make_file(amounts)
    if made is None:
        return None
    with contextlib.suppress(FileExistsError):
        os.link(made, path)
    os.unlink(made)
    return path


def drop_file(path):
    if path is not None:
        os.unlink(path)


@contextlib.contextmanager
def held(amounts, group=""):
    """While it lasts, this process has accelerators of each kind: whole ones, or a part of one. {kind: their names}.

    GPUs it has for longer: see _keep. `group`: the placement group whose they are; "" where they are of none.
    """
    path = os.environ.get(FILE_VARIABLE)
    if path == _OF_NODE and amounts:
        path = _file_of_node()
    if not amounts or path is None:
        yield {}
        return
    before = {VISIBLE[name]: os.environ.get(VISIBLE[name]) for name in amounts if name != GPU}
    names = {name: (_keep if name == GPU else _claim)(path, name, amount, group) for name, amount in amounts.items()}
    os.environ.update({VISIBLE[name]: ",".join(those) for name, those in names.items()})
    try:
        yield names
    finally:
        for name, those in names.items():
            if name != GPU:
                _release(path, name, those, amounts[name])
        for variable, value in before.items():
            if value is None:
                del os.environ[variable]
            else:
                os.environ[variable] = value


def _keep(path, kind, amount, group):
    """The same as long as the process lives and is told the same amount.

    Libraries ask once in the life of a process what there is. The node gives one that has GPUs no call that needs another amount.
    """
    global _kept
    if _kept[0] != amount:
        _release(path, kind, _kept[1], _kept[0])
        _kept = amount, _claim(path, kind, amount, group)
    return _kept[1]


def _claim(path, kind, amount, group):
    end = time.monotonic() + _PATIENCE_SECONDS
    part = min(amount, 1.0)
    while True:
        with _holders(path) as holders:
            of_kind, groups = holders.get(kind, {}), holders.setdefault(_GROUPS, {}).setdefault(kind, {})
            free = {name: 1.0 - sum(share for process, share in whose if _lives(process)) for name, whose in of_kind.items()}
            # Of those that a group has had it has the same again. Parts are taken where most is taken already, so that others stay whole.
            fitting = sorted(
                (groups.get(name, "") not in (group, ""), groups.get(name, "") != group, room, name)
                for name, room in free.items()
                if room + 1e-6 >= part
            )
            wanted = min(max(1, int(amount)), len(free))  # The user's CUDA_VISIBLE_DEVICES may name fewer.
            if len(fitting) < wanted and time.monotonic() > end:
                fitting = sorted(((room, name) for name, room in free.items()), reverse=True)  # Who has them waits, and lends them.
            if len(fitting) >= wanted:
                names = [name for *_, name in fitting[:wanted]]
                for name in names:
                    of_kind[name].append([os.getpid(), part])
                    groups[name] = group
                return names
        time.sleep(_PAUSE_SECONDS)


_GROUPS = "groups"  # In the file: the placement group that has had each last.


def _release(path, kind, names, amount):
    with _holders(path) as holders:
        for name in names:
            holders[kind][name].remove([os.getpid(), min(amount, 1.0)])


@contextlib.contextmanager
def _holders(path):
    """[process, part] of all who have some of an accelerator, by its kind and name. What is changed in it is kept."""
    with open(path, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        holders = json.load(file)
        for kind in holders.keys() - {_GROUPS}:
            holders[kind] = {name: [one for one in whose if _lives(one[0])] for name, whose in holders[kind].items()}
        yield holders
        file.seek(0)
        file.truncate()
        json.dump(holders, file)


def _lives(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # The latter where it ends between opening and reading.
        return False
