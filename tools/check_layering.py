#!/usr/bin/env python3
"""Checks that every file under src/menger includes only from its own folder and from folders above it in the design's list, and
in a folder with rooms likewise. Test files and what only they include (*_testing.h) may look into every room of their folder.

Also: torch is included only under src/menger/networks/torch, nothing outside that folder includes its headers, and files of
ours are named from src ("menger/base/error.h"). No two headers of the program define a type of one name, nor two of a folder, those
of tests too, one inline function: linked into one program, those of one header would serve for both. Modules under python import each other in no circle, imports inside functions
counted too. Prints each violation with its place; fails if there is one.

    check_layering.py [ROOT]      checks the tree at ROOT (default: this one)
    check_layering.py --self-test checks that violations are found
"""

import ast
import pathlib
import re
import sys
import tempfile

import sources

TORCH = ("torch/", "ATen/", "c10/", "caffe2/")
TORCH_FOLDER = "networks/torch"


TYPE = re.compile(r"^(?:class|struct|enum class)\s+(?:alignas\([^)]*\)\s*)?(\w+)\s*(?:final\s*)?(?::[^:;{][^;{]*)?\{", re.MULTILINE)


INLINE = re.compile(r"^inline\s[^;={(]*?(\w+)\(([^)]*)\)", re.MULTILINE)


def twice_named(root):
    """One line for each type that two headers define in namespace menger, those that only tests include aside, and for each inline
    function that two headers of a folder define."""
    places = {}
    house = root / "src" / "menger"
    for path in sorted(house.rglob("*.h")):
        text = path.read_text()
        if not path.name.endswith(("_testing.h", "_fixture.h")) and "simulation" not in path.parts and "testing" not in path.parts:
            for name in TYPE.findall(text):
                places.setdefault((f"{name} is a type", None), []).append(path)
        for name, parameters in INLINE.findall(text):
            types = ", ".join(re.sub(r"\s+\w+$", "", parameter.strip()) for parameter in parameters.split(","))
            folder = path.relative_to(house).parts[0]
            places.setdefault((f"{name}({types}) is a function", folder), []).append(path)
    twice = {what: [path.relative_to(root).as_posix() for path in paths] for (what, _), paths in places.items() if len(paths) > 1}
    return [f"{what} in {' and in '.join(where)}; give one another name" for what, where in twice.items()]


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
            elif target_folder == folder and (breach := room_breach(folder, inside, target)):
                found.append(f"{where}; {breach}")
    return found


def room_breach(folder, inside, target):
    """What is wrong with a file of a folder that includes another one of it, by their rooms; or None."""
    rooms = sources.ROOMS.get(folder)
    if not rooms or inside.endswith(("_test.cc", "_testing.h")):
        return None
    own, other = ("/".join(name.split("/")[1:-1]) for name in (inside, target))
    for room in (own, other):
        if room not in rooms:
            return f"'{room}' is not a room of {folder}: {', '.join(room or 'the folder itself' for room in rooms)}"
    if rooms.index(other) > rooms.index(own):
        return f"{folder}/{own} is above {folder}/{other} and may not know it"
    return None


def modules(root):
    """name -> file of every Python module under python."""
    found = {}
    for path in sorted((root / "python").rglob("*.py")):
        parts = path.relative_to(root / "python").with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name, path, known):
    """The modules of `known` that a module imports by name, wherever in it; the packages that they lie in are not counted."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                inside = f"{origin}.{alias.name}"
                yield from [each for each in (inside, origin) if each in known][:1]


def circles(root):
    """One line for each module that imports itself by way of others, with one such way; each circle once."""
    known = modules(root)
    edges = {name: sorted(set(imports(name, path, known)) - {name}) for name, path in known.items()}
    found, reported = [], set()
    for start in edges:
        way = _way_back(start, edges)
        if way and frozenset(way) not in reported:
            reported.add(frozenset(way))
            found.append(f"{known[start].relative_to(root)}: imports go round: {' -> '.join(way)}; move what both need into a module "
                         "that imports neither")  # fmt: skip
    return found


def _way_back(start, edges):
    """The shortest way along `edges` from `start` to itself, or None."""
    came_from, waiting = {}, [start]
    for name in waiting:
        for other in edges[name]:
            if other == start:
                way = [name]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return [*reversed(way), start]
            if other not in came_from:
                came_from[other] = name
                waiting.append(other)
    return None


def self_test():
    """Each breach of a rule must be found, and a clean tree must pass."""
    test_circles()
    test_names()
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
        ("src/menger/replay/a.cc", '#include "menger/replay/chunks/a.h"', 0),
        ("src/menger/replay/chunks/a.cc", '#include "menger/replay/a.h"', 1),
        ("src/menger/replay/chunks/a_test.cc", '#include "menger/replay/a.h"', 0),
        ("src/menger/replay/client/a.cc", '#include "menger/replay/attic/a.h"', 1),
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


def test_names():
    trees = [
        ({"base/a.h": "struct A {\n};", "runtime/a.h": "class A;\nstruct B : A {\n};"}, 0),
        ({"base/a.h": "struct A {\n};", "runtime/a.h": "class A final : public B {\n};"}, 1),
        ({"base/a.h": "class A {\n};", "runtime/a.h": "struct A::Nested {\n};\nenum class C : int { kA };"}, 0),
        ({"base/a.h": "class A {\n};", "base/a_testing.h": "class A {\n};"}, 0),
        ({"base/a_testing.h": "inline int F() { return 1; }", "base/b/a_testing.h": "inline int F() { return 2; }"}, 1),
        ({"base/a.h": "inline int F(int a) {\n", "base/b.h": "inline int F(int b) {\n"}, 1),
        ({"base/a.h": "inline int F(int a) {\n", "base/b.h": "inline int F(char a) {\n"}, 0),
        ({"base/a.h": "inline constexpr int kA = F(1);", "runtime/a.h": "inline int F(int a) {\n"}, 0),
    ]
    for files, expected in trees:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / "src" / "menger" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = twice_named(pathlib.Path(folder))
            assert len(found) == expected, f"{files}: expected {expected}, found {found}"
    print(f"{len(trees)} trees of types and functions pass")


def test_circles():
    trees = [
        ({"a.py": "import p.b", "b.py": "import os"}, 0),
        ({"a.py": "import p.b", "b.py": "import p.a"}, 1),
        ({"a.py": "from p import b", "b.py": "def f():\n    from p.a import g\n"}, 1),
        ({"a.py": "from . import b", "b.py": "from .c import d", "c.py": "from p import a"}, 1),
        ({"a.py": "from p import b", "b.py": "", "__init__.py": "from p.a import b"}, 0),
        ({"a.py": "from p import f", "__init__.py": "from p.a import g"}, 1),
        ({"a.py": "import p.b", "b.py": "import p.a", "c.py": "import p.d", "d.py": "import p.c"}, 2),
        ({"a.py": "import p.b, p.c", "b.py": "import p.a", "c.py": "import p.a"}, 2),
        ({"a.py": "if __name__ == '__main__':\n    from p import a\n"}, 0),
    ]
    for files, expected in trees:
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "python" / "p"
            package.mkdir(parents=True)
            for name, text in {"__init__.py": "", **files}.items():
                (package / name).write_text(text)
            found = circles(pathlib.Path(folder))
            assert len(found) == expected, f"{files}: expected {expected}, found {found}"
    print(f"{len(trees)} trees of modules pass")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else sources.ROOT
    found = violations(root) + twice_named(root) + circles(root)
    print("\n".join(found) if found else "every include follows the layering, each type and inline function has a name of its own, and no imports go round")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
