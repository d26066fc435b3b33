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

DECLARED = re.compile(r"(?<!::)\b([A-Za-z_]\w*)(?=\s*(?:[({=;\[]|:(?!:)))|\b(?:class|struct|enum|define)\s+(\w+)")
NO_NAME = set("const noexcept static_assert sizeof default return final void class struct enum operator true false decltype "
              "requires".split())
NO_DECLARATION = re.compile(r"\s|//|namespace\b|using\s[\w:]+;|TEST|INSTANTIATE|#\s*include|\}")
INCLUDED = re.compile(r'^#include "(menger/.+)"', re.MULTILINE)
SOURCES = pathlib.Path(__file__).parent.parent / "src"


@functools.cache
def declared(path):
    """The names at the left margin of a file that a declaration may introduce."""
    names = set()
    for line in path.read_text().splitlines():
        if line and not NO_DECLARATION.match(line):
            names.update(first or second for first, second in DECLARED.findall(line))
    return names - NO_NAME


@functools.cache
def includes(path):
    """Our headers that a file includes, and what these include."""
    found = {SOURCES / header for header in INCLUDED.findall(path.read_text())}
    found = {header for header in found if header.exists()}
    return found.union(*map(includes, found))


def visible(path):
    """The names that a file has, each with the file that declares it: a header that it includes, or else itself."""
    included = {(name, header) for header in includes(path) for name in declared(header)}
    return included | {(name, path) for name in declared(path) - {name for name, _ in included}}


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
