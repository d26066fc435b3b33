#!/usr/bin/env python3
"""Groups source files so that the compiler reads a group at once: headers and what they instantiate then cost once a group.

    groups.py FILE...   prints one group a line, its files separated by semicolons

Files of a group share one anonymous namespace, so two that declare the same name at the left margin never share a group, nor
does one with another that includes a header which declares it: that one's calls would find the helper. (Names that only headers
declare are the program's, and mean the same everywhere.) A new file can therefore not break a grouped build by the name of a
helper. Where names are not at the left margin (the formatter puts them there) the
compiler says "redefinition", and where one is taken in vain the files are merely apart.
"""

import functools
import pathlib
import re
import sys

LINES_MAX = 4000  # More saves little, and needs gigabytes where sanitizers instrument.

TYPE = re.compile(r"(?:enum |typedef |#\s*define |class |struct )+(\w+)")
OTHER = re.compile(r"((?:\w+::)*\w+)(?=\s*(?:[({=;\[]|:(?!:)))")
TEMPLATE = re.compile(r"template\s*<[^>]*>\s*")
NO_NAME = set("const noexcept static_assert sizeof decltype requires default return final operator bool void int".split())
NO_DECLARATION = re.compile(r"\s|//|namespace\b|using\s[\w:]+;|TEST|INSTANTIATE|#\s*include|\}")
INCLUDED = re.compile(r'^#include "(menger/.+)"', re.MULTILINE)
SOURCES = pathlib.Path(__file__).parent.parent / "src"


def declared_in(line):
    """The name that a line at the left margin may declare, or "": the first that begins its body, arguments or value."""
    line = TEMPLATE.sub("", line)
    if found := TYPE.match(line):
        return found[1]
    name = next((name for name in OTHER.findall(line) if name not in NO_NAME), "")
    return "" if "::" in name else name


@functools.cache
def declared(path):
    """The names that a file declares at the left margin."""
    lines = [line for line in path.read_text().splitlines() if line and not NO_DECLARATION.match(line)]
    return set(map(declared_in, lines)) - {""}


def included(path):
    """Our headers that a file names."""
    headers = [SOURCES / header for header in INCLUDED.findall(path.read_text())]
    return {header for header in headers if header.exists()}


@functools.cache
def reached(path):
    """Those, and what these name."""
    found = included(path)
    return found.union(*map(reached, found))


def visible(path):
    """The names that a file has, each with the file that declares it: a header, or itself, unless a header that it names does."""
    of_headers = {(name, header) for header in reached(path) for name in declared(header)}
    own = declared(path).difference(*map(declared, included(path)))
    return of_headers | {(name, path) for name in own}


def groups(paths, lines_max=LINES_MAX):
    """Lists of the paths, each in the first group that has room and means the same by all names of both."""
    found = []  # (files, names, lines)
    for path in sorted(paths):
        names, lines = visible(path), path.read_text().count("\n")
        for i, (files, taken, length) in enumerate(found):
            shared = {name for name, _ in names} & {name for name, _ in taken}
            if length + lines <= lines_max and not any(
                    name in shared and file.suffix == ".cc" for name, file in names ^ taken):
                found[i] = ([*files, path], names | taken, length + lines)
                break
        else:
            found.append(([path], names, lines))
    return [files for files, _, _ in found]


def main():
    for group in groups(map(pathlib.Path, sys.argv[1:])):
        print(";".join(map(str, group)))


if __name__ == "__main__":
    main()
