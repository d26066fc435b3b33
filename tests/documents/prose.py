"""What the documents name between their blocks, and what there is of it: commands, flags, options, files."""

import dataclasses
import functools
import os
import re
import subprocess

import blocks
from blocks import ROOT
from workplace import PATIENCE_S, PROGRAM

LEFT_OUT = {".git", ".venv", ".peers", "build", "runs", "__pycache__"}


@dataclasses.dataclass(frozen=True)
class Span:
    """What stands between two `."""

    document: str
    line: int
    text: str

    def __str__(self):
        return f"{self.document}:{self.line}: `{self.text}`"


@functools.cache
def spans():
    """Those of all documents. One may go on in the next line of its paragraph."""
    found = []
    for document in blocks.DOCUMENTS:
        paragraph = []
        for number, line in [*blocks.read(document).prose, (0, "")]:
            if line.strip() and not line.startswith("|"):
                paragraph.append((number, line))
                continue
            for part in (paragraph, [(number, line)]):
                text = "\n".join(line for _, line in part)
                for match in re.finditer("`([^`]+)`", text):
                    at = part[text.count("\n", 0, match.start())][0]
                    found.append(Span(document, at, match[1].replace("\n", " ")))
            paragraph = []
    return found


def ask(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def flags_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]*", text))


@functools.cache
def flags_of_program():
    """{command: its flags}; those of all commands are under ""."""
    top = ask("--help")
    names = re.findall(r"^  (\w+) ", top.partition("Subcommands:")[2], re.MULTILINE)
    return {"": flags_in(top), **{name: flags_in(top) | flags_in(ask(name, "--help")) for name in names}}


@functools.cache
def options():
    """Names of options, of the top level and as section.name."""
    described = ask("describe", "experiment")
    sections = re.search(r"^sections: (.*), and the algorithm's: (.*);", described, re.MULTILINE)
    named = [*sections[1].split(", "), *sections[2].split(", "), "host", "atari", "mujoco"]
    row = re.compile(r"^  ([a-z_]+(?:\.[a-z0-9_]+)?)  ", re.MULTILINE)
    return set(row.findall(described)).union(*(row.findall(ask("describe", name)) for name in named))


def source_of_benchmark(word):
    """The source of what a word names as a program of bench/, or None."""
    if match := re.fullmatch(r"(?:build/release/bench/)?bench_(\w+)", word):
        return ROOT / "bench" / f"{match[1]}.cc"
    return ROOT / word if re.fullmatch(r"bench/[\w/]+\.(py|sh)", word) else None


@functools.cache
def flags_of_benchmark(path):
    """A benchmark of Python may leave its options to a module beside it."""
    text = path.read_text()
    for module in re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE):
        if (path.parent / f"{module}.py").exists():
            text += (path.parent / f"{module}.py").read_text()
    return flags_in(text) | ({"--benchmark_min_time"} if "BENCHMARK(" in text else set())


@functools.cache
def tree():
    """Every file and folder of the project, from its root."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in [*folders, *files]]
    return found


def expand(path):
    """`a.{h,cc}` is two files."""
    match = re.search(r"\{([^}]*)\}", path)
    return [path[:match.start()] + each + path[match.end():] for each in match[1].split(",")] if match else [path]
