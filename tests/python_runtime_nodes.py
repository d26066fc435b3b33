"""What the tests of menger.runtime in a cluster share: nodes that are processes of their own, all on this machine."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from python_runtime import PATIENCE_S, ROOT, ray

PROGRAM = pathlib.Path(os.environ.get("MENGER_PROGRAM", ROOT / "build" / "release" / "menger"))


class Nodes:
    """A head and a node that has joined it; CPUs are theirs alone."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.processes = []
        self.log = os.path.join(self.folder.name, "log")
        self.address = self.begin("--head", "--listen", "127.0.0.1:0", "--cpus", "1", "--resources", "first=1")
        self.begin("--join", self.address, "--cpus", "2", "--resources", "second=2", "--gpus", "2", "--name", "second")

    def begin(self, *options, log=None):
        cache = () if "--cache" in options else ("--cache", os.path.join(self.folder.name, "cache"))
        command = [PROGRAM, "node", *options, "--store-bytes", str(2**28), *cache]
        # What the driver and its tests may have set is none of a node's.
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("MENGER_", "CUDA_", "PYTHON"))}
        variables["TMPDIR"] = self.folder.name
        with open(log or self.log, "a") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=variables)
        self.processes.append(process)
        return process.stdout.readline().strip()

    def end(self, which=slice(None)):
        ending = self.processes[which]
        for process in ending:
            process.terminate()
        for process in ending:
            process.wait(PATIENCE_S)
            process.stdout.close()
        del self.processes[which]


def await_nodes(count):
    end = time.monotonic() + PATIENCE_S
    while len(ray.nodes()) != count and time.monotonic() < end:
        time.sleep(0.02)


def run_program(address, source, folder, cwd=None):
    """What a program has printed that joins the nodes."""
    pathlib.Path(folder, "program.py").write_text(source)
    return subprocess.run(
        [sys.executable, os.path.join(folder, "program.py")],
        env={**os.environ, "MENGER_ADDRESS": address, "PYTHONPATH": str(ROOT / "python")},
        cwd=cwd or folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
