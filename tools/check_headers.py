#!/usr/bin/env python3
"""Checks that every header under src compiles alone, with the flags of its folder. What passed is remembered by content.

    check_headers.py [--build FOLDER] [--torch]   --torch: also those of networks/torch (20 s each)

A header that some source includes before anything else has been compiled alone when that source is; so the build must be up to
date (`make check` sees to it), and only the other headers are compiled here.
"""

import argparse
import sys

import sources

DEFAULT = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-march=x86-64-v3", "-Isrc"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="the configured build folder")
    parser.add_argument("--torch", action="store_true", help="also the headers of networks/torch")
    options = parser.parse_args()

    flags_of_folder, compiled_first = {}, set()
    if (sources.ROOT / options.build / "compile_commands.json").is_file():
        commands = sources.compile_commands(options.build)
        groups = [path for path in commands if sources.is_group(path)]
        # Of a group's sources only the first has nothing before it.
        later = {name for group in groups for _, _, name in sources.includes(group)[1:]}
        for source, arguments in commands.items():
            flags_of_folder.setdefault(source.parent, arguments)
            if source.is_relative_to(sources.ROOT / "src") and (included := sources.includes(source)):
                if str(source) not in later:
                    compiled_first.add(included[0][2])
    jobs = []
    for path in sources.cpp_files(folders=["src"]):
        relative = path.relative_to(sources.ROOT / "src").as_posix()
        if path.suffix != ".h" or relative in compiled_first:
            continue
        if relative.startswith("menger/networks/torch/") and not options.torch:
            continue
        if relative.startswith("menger/environments/mujoco/") and path.parent not in flags_of_folder:
            continue  # Configured without MuJoCo, so its headers are not there.
        # Included from an empty file, because a header compiled as the main file is warned of its #pragma once.
        command = [*flags_of_folder.get(path.parent, DEFAULT), "-fsyntax-only", "-x", "c++", "-"]
        digest = sources.content_hash(path, *command)
        jobs.append((path, digest, command, f'#include "{relative}"\n'))
    return 0 if sources.run_cached(jobs, sources.ROOT / "build" / "headers", "headers") else 1


if __name__ == "__main__":
    sys.exit(main())
