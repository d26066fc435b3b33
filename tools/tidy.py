#!/usr/bin/env python3
"""Runs clang-tidy on every source file under src that the build compiles. What passed is remembered by content.

    tidy.py [--build FOLDER] [--all] [NAME...]   --all: also tests and networks/torch (slow); NAME: only paths containing it

Files with the same options are read in groups (tools/groups.py), whatever their folders: much of the time goes into what they
include.
"""

import argparse
import re
import subprocess
import sys

import groups
import sources

# What says how to compile, and not what the source means: files that differ in these alone may share a group. Those of shared
# libraries, which may have names that others have, differ in more (-D..._EXPORTS).
OF_CODE = re.compile(r"-D\w+_SHARED|-fPI[CE]|-O\d|-fno-[a-z]+-math|-fno-math-errno|--param.*")

CACHE = sources.ROOT / "build" / "tidy"
LINES_MAX = 8000  # Of a group: most of the time goes into headers, the standard library's among them.


def files_by_options(options):
    """{(is test, the compiler's arguments): paths} of what is to be checked."""
    found = {}
    for path, arguments in sorted(sources.compile_commands(options.build).items()):
        if not path.is_relative_to(sources.ROOT / "src"):
            continue
        relative = path.relative_to(sources.ROOT).as_posix()
        is_test = relative.endswith("_test.cc")
        if not options.all and (is_test or "/networks/torch/" in relative):
            continue
        if options.names and not any(name in relative for name in options.names):
            continue
        meaning = tuple(argument for argument in arguments if not OF_CODE.fullmatch(argument))
        found.setdefault((is_test, meaning), []).append(path)
    return found


def group_file(paths):
    """A file that includes these. It is the same, name and all, whenever the files are."""
    text = "// NOLINTBEGIN(bugprone-suspicious-include)\n"
    text += "".join(f'#include "{path.relative_to(sources.ROOT / "src").as_posix()}"\n' for path in paths)
    name = "_".join(paths[0].relative_to(sources.ROOT / "src").with_suffix("").parts)
    file = CACHE / "groups" / f"{name}_and_{len(paths) - 1}_more.cc"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "// NOLINTEND(bugprone-suspicious-include)\n")
    return file


# g++'s own options that clang does not know are no reason to complain; lock rules are clang's (base/mutex.h).
OF_CLANG = ["-Wno-unknown-warning-option", "-Wno-unused-command-line-argument", "-Wthread-safety", "-Wreserved-identifier"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="the configured build folder")
    parser.add_argument("--all", action="store_true", help="also tests and networks/torch")
    parser.add_argument("names", nargs="*", help="only files whose path contains one of these")
    options = parser.parse_args()

    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    settings = (sources.ROOT / ".clang-tidy").read_text()
    jobs = []
    for (is_test, arguments), paths in files_by_options(options).items():
        # Tests are read one by one: some stand in for what others include.
        for group in [[path] for path in paths] if is_test else groups.groups(paths, LINES_MAX):
            file = group_file(group) if len(group) > 1 else group[0]
            # g++'s own options that clang does not know are no reason to complain.
            command = ["clang-tidy", "--quiet", f"--config-file={sources.ROOT / '.clang-tidy'}", str(file), "--",
                       *arguments[1:], *OF_CLANG]
            digest = sources.content_hash(file, version, settings, *arguments, *OF_CLANG)
            jobs.append((file, digest, command, None))
    return 0 if sources.run_cached(jobs, CACHE, "clang-tidy") else 1


if __name__ == "__main__":
    sys.exit(main())
