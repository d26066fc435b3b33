#!/usr/bin/env python3
"""Checks that a program does not compile, and that the error its first line promises comes first.

check.py PROGRAM COMPILER [OPTION...]
"""

import pathlib
import subprocess
import sys


def main():
    program, command = sys.argv[1], sys.argv[2:]
    promise = pathlib.Path(program).read_text().splitlines()[0]
    prefix, _, expected = promise.partition("// error: ")
    if prefix or not expected:
        print(f"{program} must begin with '// error: TEXT', not with '{promise}'")
        return 1
    done = subprocess.run([*command, program], capture_output=True, text=True, timeout=240, check=False)
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    if errors and expected in errors[0]:
        return 0
    print(f"expected the first of these to have '{expected}':", done.stderr, sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
