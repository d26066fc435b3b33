"""Where a server keeps its checkpoints, and finds them again."""

import os
import shutil
import tempfile
import weakref


class CheckpointerBase:
    def folder(self):
        """The folder that a server keeps its checkpoints in."""
        raise NotImplementedError


class DefaultCheckpointer(CheckpointerBase):
    """Checkpoints below `path`; a new server begins with the newest there.

    Where there is none, it begins with that of `fallback_checkpoint_path`, a folder of such checkpoints, if one is named.
    """

    def __init__(self, path, group="", fallback_checkpoint_path=None):
        if not path:
            raise ValueError("path of a checkpointer is empty; it must name a folder")
        self.path = path
        self.group = group
        self.fallback_checkpoint_path = fallback_checkpoint_path

    def folder(self):
        path = os.path.abspath(os.path.join(self.path, self.group))
        os.makedirs(path, exist_ok=True)
        if self.fallback_checkpoint_path and not newest(path) and newest(self.fallback_checkpoint_path):
            shutil.copytree(self.fallback_checkpoint_path, path, dirs_exist_ok=True, copy_function=_link_or_copy)
        return path

    def __repr__(self):
        return f"DefaultCheckpointer(path={self.path!r}, group={self.group!r})"


def _link_or_copy(source, target):
    if os.path.basename(source) == "lock":
        return
    try:
        os.link(source, target)  # Files of checkpoints never change.
    except OSError:
        shutil.copy2(source, target)


class TempDirCheckpointer(CheckpointerBase):
    """Checkpoints in a folder that goes with this object."""

    def __init__(self):
        self._path = None

    def folder(self):
        if self._path is None:
            self._path = tempfile.mkdtemp(prefix="menger-replay-")
            weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        return self._path

    def __repr__(self):
        return f"TempDirCheckpointer({self._path!r})"


def default_checkpointer(group=None):
    del group
    return TempDirCheckpointer()


def newest(folder):
    """The path of the newest checkpoint there, or None."""
    numbers = []
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        head, _, number = name.partition("-")
        if head == "checkpoint" and number.isdigit():
            numbers.append(int(number))
    return os.path.join(folder, f"checkpoint-{max(numbers)}") if numbers else None
