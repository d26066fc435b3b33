#!/usr/bin/env python3
"""Runs clang-tidy on every source file under src that the build compiles. What passed is remembered by content.

    tidy.py [--build FOLDER] [--all] [NAME...]   --all: also tests and networks/torch (slow); NAME: only paths containing it
"""

import argparse
import subprocess
import sys

import sources


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="the configured build folder")
    parser.add_argument("--all", action="store_true", help="also tests and networks/torch")
    parser.add_argument("names", nargs="*", help="only files whose path contains one of these")
    options = parser.parse_args()

    version = subprocess.run(["clang-tidy", "--version"], stdout=subprocess.PIPE, check=True).stdout
    settings = (sources.ROOT / ".clang-tidy").read_text()
    jobs = []
    for path, arguments in sorted(sources.compile_commands(options.build).items()):
        if not path.is_relative_to(sources.ROOT / "src"):
            continue
        relative = path.relative_to(sources.ROOT).as_posix()
        if not options.all and (relative.endswith("_test.cc") or "/networks/torch/" in relative):
            continue
        if options.names and not any(name in relative for name in options.names):
            continue
        # g++'s own options that clang does not know are no reason to complain.
        command = ["clang-tidy", "--quiet", "-p", options.build, "--extra-arg=-Wno-unknown-warning-option",
                   "--extra-arg=-Wno-unused-command-line-argument", relative]
        jobs.append((path, sources.content_hash(path, version, settings, *arguments), command, None))
    return 0 if sources.run_cached(jobs, sources.ROOT / "build" / "tidy", "clang-tidy") else 1


if __name__ == "__main__":
    sys.exit(main())
