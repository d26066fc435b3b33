"""What the checks share: which files there are, what each includes, and how each is compiled."""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The order of design: a file includes only from its own folder and from folders before it.
LAYERS = [
    "base", "tensor", "runtime", "replay", "parameters", "environments", "collectors", "networks",
    "algorithms", "policies", "training", "cli",
]  # fmt: skip

# The same inside a folder that has rooms; "" is the folder itself.
ROOMS = {
    "base": ["", "sharing"],
    "replay": ["chunks", "selectors", "", "durability", "protocol", "client", "server", "library"],
    "runtime": ["values", "calls", "memory", "channel", "watching", "worker", "node", "control", "net", "driver", "cluster", "", "library", "redis", "simulation", "testing"],
    "training": ["learning", "roles", ""],
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def cpp_files(root=ROOT, folders=("src", "tests", "bench")):
    """Every C++ file of these folders, sorted."""
    return sorted(
        path
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cc")
    )


@functools.lru_cache(maxsize=None)
def includes(path):
    """(line number, quote, name) of each include of a file."""
    text = path.read_text()
    return [(text.count("\n", 0, m.start(1)) + 1, m[1], m[2]) for m in INCLUDE.finditer(text)]


def content_hash(path, *extra):
    """A hash of a file, of every file of ours that it includes, directly or not, and of `extra`."""
    seen = {}
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen[file] = hashlib.sha256(file.read_bytes()).hexdigest()
        for _, _, name in includes(file):
            included = ROOT / "src" / name
            if included.is_file():
                waiting.append(included)
    lines = [f"{file} {digest}" for file, digest in sorted(seen.items())]
    return hashlib.sha256("\n".join([*lines, *map(str, extra)]).encode()).hexdigest()


def is_group(path):
    """Whether a file is one that CMake has made of several sources (cmake/Groups.cmake)."""
    return path.parent.name == "Unity"


def compile_commands(build):
    """source path -> the compiler's arguments, without the output and the source itself; of a group also each of its sources."""
    commands = {}
    for entry in json.loads((ROOT / build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        while os.path.basename(words[0]) == "ccache":
            words.pop(0)
        arguments, skip = [], False
        for word in words:
            if skip or word in ("-c", "-o", entry["file"]):
                skip = word == "-o"
                continue
            arguments.append(word)
        path = pathlib.Path(entry["file"])
        commands[path] = arguments
        if is_group(path):
            commands.update((pathlib.Path(name), arguments) for _, _, name in includes(path))
    return commands


def run_cached(jobs, cache, label):
    """Runs (path, hash, command, standard input) jobs on all cores; true if all passed.

    A job that passed is not run again until its hash changes: `cache` is the folder that remembers.
    """
    cache.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not (cache / job[1]).exists()]

    def run(job):
        path, digest, command, text = job
        try:
            done = subprocess.run(
                command, input=text, cwd=ROOT, text=True, timeout=900, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return path, f"{command[0]} did not end within 900 s\n"
        if done.returncode == 0:
            (cache / digest).touch()
            return path, None
        return path, done.stdout

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, output in pool.map(run, waiting):
            if output is not None:
                failures += 1
                print(f"{path.relative_to(ROOT)}:\n{output}", flush=True)
    kept = len(jobs) - len(waiting)
    print(f"{label}: {len(jobs)} files, {kept} unchanged since they passed, {failures} failed")
    return failures == 0
