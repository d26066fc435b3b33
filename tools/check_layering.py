#!/usr/bin/env python3
"""Checks that every file under src/menger includes only from its own folder and from folders above it in the design's list.

Also: torch is included only under src/menger/networks/torch, nothing outside that folder includes its headers, and files of
ours are named from src ("menger/base/error.h"). Prints each violation with its place; fails if there is one.

    check_layering.py [ROOT]      checks the tree at ROOT (default: this one)
    check_layering.py --self-test checks that violations are found
"""

import pathlib
import sys
import tempfile

import sources

TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
TORCH_FOLDER = "networks/torch"


def violations(root):
    """One line for each include that breaks a rule."""
    found = []
    house = root / "src" / "menger"
    for path in sources.cpp_files(root):
        inside = path.relative_to(house).as_posix() if path.is_relative_to(house) else None
        folder = inside.split("/")[0] if inside else None
        # Benchmarks compare with it.
        may_see_torch = path.is_relative_to(root / "bench") or (inside or "").startswith(TORCH_FOLDER + "/")
        if inside and "/" in inside and folder not in sources.LAYERS:
            found.append(f"{path}: '{folder}' is not a folder of the design: {', '.join(sources.LAYERS)}")
            continue
        for line, quote, name in sources.includes(path):
            where = f"{path.relative_to(root)}:{line}: includes {name}"
            if name.startswith(TORCH) and not may_see_torch:
                found.append(f"{where}; torch stays inside src/menger/{TORCH_FOLDER}")
            if not name.startswith("menger/"):
                if quote == '"' and inside and (path.parent / name).is_file():
                    found.append(f"{where}; name files of ours from src, as menger/folder/file.h")
                continue
            target = name.removeprefix("menger/")
            if quote == "<":
                found.append(f"{where}; files of ours go in quotes")
            if target.startswith(TORCH_FOLDER + "/") and not may_see_torch:
                found.append(f"{where}; that library is opened at run time, never included")
            target_folder = target.split("/")[0]
            if folder is None:
                continue  # Tests and benchmarks may look into every folder.
            if target_folder not in sources.LAYERS:
                found.append(f"{where}; '{target_folder}' is not a folder of the design")
            elif sources.LAYERS.index(target_folder) > sources.LAYERS.index(folder):
                found.append(f"{where}; {folder} is above {target_folder} and may not know it")
    return found


def self_test():
    """Each breach of a rule must be found, and a clean tree must pass."""
    cases = [
        ("src/menger/tensor/a.h", '#include "menger/base/error.h"', 0),
        ("src/menger/tensor/a.h", '#include "menger/tensor/spec.h"', 0),
        ("src/menger/tensor/a.h", '#include "menger/collectors/policy.h"', 1),
        ("src/menger/base/a.cc", '  #  include "menger/cli/main.h"', 1),
        ("src/menger/networks/a.cc", "#include <torch/torch.h>", 1),
        ("src/menger/networks/torch/a.cc", "#include <torch/torch.h>", 0),
        ("src/menger/networks/a.cc", '#include "menger/networks/torch/a.h"', 1),
        ("src/menger/base/a.cc", "#include <menger/base/error.h>", 1),
        ("src/menger/base/a.cc", '#include "a.cc"', 1),
        ("src/menger/agents/a.cc", "#include <vector>", 1),
        ("src/menger/base/a.cc", '#include "menger/agents/a.h"', 1),
        ("bench/a.cc", '#include "menger/cli/main.h"', 0),
        ("bench/a.cc", "#include <ATen/ATen.h>", 0),
        ("tests/a.cc", "#include <ATen/ATen.h>", 1),
    ]
    for name, text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text + "\n")
            found = violations(pathlib.Path(folder))
            assert len(found) == expected, f"{name} with {text}: expected {expected}, found {found}"
    print(f"{len(cases)} cases pass")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else sources.ROOT
    found = violations(root)
    print("\n".join(found) if found else "every include follows the layering")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
