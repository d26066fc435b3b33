#!/usr/bin/env python3
"""Checks what must never be in the tree: over-long files, unfinished marks, paths of one machine, names of registries.

    check_tree.py [ROOT]      checks the tree at ROOT (default: this one)
    check_tree.py --self-test checks that each is found
"""

import os
import pathlib
import re
import sys
import tempfile

import sources

MAX_LINES = 500
SKIPPED_FOLDERS = {".git", ".venv", ".peers", "build", "runs", "__pycache__"}
CODE = {".h", ".cc", ".py", ".sh", ".cmake", ".toml", ".proto", ".txt", ".md", ".json", ""}

# Letters in brackets keep this file from containing what it looks for.
FORBIDDEN = [
    (r"\b(TO[D]O|FIX[M]E|X[X]X)\b", "finish it, or open an issue"),
    (r"(?<![\w.$}/-])/(work|home|root|Users|mnt)/\w", "a path of one machine: make it relative or an option"),
    (r"(?<![\w.$}/-])/tm[p]/\w", "use the system's temporary folder through the language's library"),
    (r"(?i)\b(py[p]i|python[h]osted|anaconda|npm[j]s|crates|deb\.de[b]ian|download\.py[t]orch|docker|ghcr)"
     r"\.(org|com|io|net)\b", "packages come from whatever registry the user's pip and apt are set to"),
]  # fmt: skip


def violations(root):
    """One line for each thing that must not be there."""
    found = []
    paths = []
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
        paths += [pathlib.Path(folder) / name for name in files]
    for path in sorted(paths):
        relative = path.relative_to(root)
        if path.suffix not in CODE or not path.is_file():
            continue
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue  # Data.
        if relative.parts[0] == "src" and path.suffix in (".h", ".cc") and len(lines) > MAX_LINES:
            found.append(f"{relative}: {len(lines)} lines; a file has at most {MAX_LINES}: split it by idea")
        for number, line in enumerate(lines, 1):
            for pattern, right in FORBIDDEN:
                if match := re.search(pattern, line):
                    found.append(f"{relative}:{number}: '{match[0]}': {right}")
    return found


def self_test():
    """Each forbidden thing must be found, and what merely looks like it must not."""
    cases = [
        ("src/a.cc", "int a;\n" * 500, 0),
        ("src/a.cc", "int a;\n" * 501, 1),
        ("docs/a.md", "// TO" + "DO: later\n", 1),
        ("docs/a.md", "mastodons\n", 0),
        ("tools/a.sh", "cd /wo" + "rk/here\n", 1),
        ("tools/a.sh", 'cd "$root/work/here"; ls .venv/work/a docs/home/b\n', 0),
        ("bench/a.py", "open('/tm" + "p/a')\n", 1),
        ("tools/a.sh", "pip install -i https://py" + "pi.org/simple\n", 1),
        ("build/a.cc", "// TO" + "DO\n", 0),
    ]
    for name, text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
            found = violations(pathlib.Path(folder))
            assert len(found) == expected, f"{name}: expected {expected}, found {found}"
    print(f"{len(cases)} cases pass")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else sources.ROOT
    found = violations(root)
    print("\n".join(found) if found else "the tree is clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
