"""What workers print: the worker says who prints, the driver shows it with that before each line."""

import ctypes
import io
import os
import sys
import threading

from menger.runtime import library

LOGGING_VARIABLE = "MENGER_RUNTIME_LOGGING"  # Where init has been told how to log.
_MARK = "\x1f"
_PIECE_BYTES_MAX = 4096  # The library hands on no more of a line at once, and would cut what is longer wherever that is.
_NAME_LETTERS_MAX = 256
_LINE_LETTERS_MAX = 1_000_000  # That the driver joins: a line without end must not fill its memory.


class Lines:
    """Takes the workers' lines in the driver. `callback` is for the library."""

    def __init__(self, shown):
        self._shown = shown
        self._failed = {}  # The driver's streams that take no more, by their letters.
        self._begun = {}  # Pieces of lines whose ends are still to come, by the node, the process and the stream's letter.
        self.callback = library.OnLine(self._on_line)

    def _on_line(self, _worker, process, node, address, size):
        if not self._shown:
            return
        line = ctypes.string_at(address, size).decode(errors="replace")
        node = node.decode(errors="replace")
        stream, name, text = parse(line)
        if line.startswith(_MARK):
            text = self._joined((node, process, stream.lower()), text, goes_on=stream.isupper())
            if text is None:
                return
        stream = stream.lower()
        file = sys.stderr if stream == "e" else sys.stdout
        if process == 0:  # Lines were left out, perhaps with the ends of some that have begun.
            self._begun.clear()
        if file is not None and self._failed.get(stream) is not file:
            self._show(stream, file, f"({_who(name, process, node)}) {text}\n")

    def _joined(self, of, text, goes_on):
        """The line that ends with this piece; None if it goes on."""
        if not goes_on and not self._begun:
            return text
        pieces = self._begun.setdefault(of, [])
        pieces.append(text)
        if goes_on and sum(map(len, pieces)) < _LINE_LETTERS_MAX:
            return None
        return "".join(self._begun.pop(of))

    def _show(self, stream, file, line):
        """Who reads the program may have gone (`program | head -1`): nothing is said of that here, as it would be for each line."""
        try:
            print(_known_to(file, line), end="", file=file, flush=True)
        except Exception:
            self._failed[stream] = file


def _who(name, process, node):
    """What a line begins with. `node`: of a cluster, or empty; `process` is 0 where it is all of a node's."""
    parts = [f"{name} pid={process}"] if process else []
    if node:
        parts.append(f"node={node}")
    return ", ".join(parts) or name


def _known_to(file, line):
    """The line, with escapes for what the stream's encoding does not know."""
    encoding = getattr(file, "encoding", None)
    return line if not encoding or line.isascii() else line.encode(encoding, "backslashreplace").decode(encoding)


def parse(line):
    """(stream, name, text) of a worker's line, or of a piece of one: then the stream is a capital letter, if the line goes on.

    What Output has not written is of nobody in particular.
    """
    if line.startswith(_MARK):
        stream, name, text = line[1:].split(_MARK, 2)
        return stream, name, text
    return "e", "worker", line


def _pieces(line, before, goes_on):
    """A line as the driver gets it: `before` begins what ends it, `goes_on` each piece of a long one before that."""
    room, begin = _PIECE_BYTES_MAX - len(before) - 1, 0
    while len(line) - begin > room:
        end = begin + room
        while line[end] & 0xC0 == 0x80:  # Within a letter of several bytes.
            end -= 1
        yield b"%s%s\n" % (goes_on, line[begin:end])
        begin = end
    yield b"%s%s\n" % (before, line[begin:])


class Output:
    """Stands for a worker's sys.stdout or sys.stderr: each whole line goes out with the name of what runs."""

    encoding, errors, newlines, closed = "utf-8", "replace", None, False

    def __init__(self, descriptor, stream, name):
        self._descriptor, self._stream, self._name = descriptor, stream, name
        self._rest = ""
        self._lock = threading.RLock()  # A signal's handler may print, too.
        self.buffer = io.FileIO(descriptor, "w", closefd=False)  # Its lines go out without a name.

    def write(self, text):
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
            if lines:
                self._put(lines)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        with self._lock:
            if self._rest:
                lines, self._rest = [self._rest], ""
                self._put(lines)

    def _put(self, lines):
        name = self._name()[:_NAME_LETTERS_MAX]
        before, goes_on = (
            f"{_MARK}{stream}{_MARK}{name}{_MARK}".encode(errors="replace") for stream in (self._stream, self._stream.upper())
        )
        for line in lines:
            for piece in _pieces(line.encode(errors="replace"), before, goes_on):
                os.write(self._descriptor, piece)  # A pipe takes so few bytes all at once: what else writes there comes before or after.

    def end_line(self):
        """What a call has printed is seen, also without the end of its line."""
        if self._rest:
            self.flush()

    def fileno(self):
        return self._descriptor

    def isatty(self):
        return False

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False
