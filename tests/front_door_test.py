"""The set-up behind `make train` and `make test`, as somebody meets it who is not root."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534


class SetUpCase(unittest.TestCase):
    """Runs the set-up by somebody who is not root, in a copy of its folder."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(ROOT / "tools", self.folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        self.packages = self.folder / "packages.txt"
        os.chmod(self.folder, 0o755)
        # A path with the tools that the script uses and no sudo.
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("bash", "env", "awk", "grep", "dirname", "dpkg-query", "sha256sum", "basename", "python3"):
            if found := shutil.which(name):
                (self.bin / name).symlink_to(found)

    def run_setup(self, packages, *arguments, **environment):
        self.packages.write_text(packages)
        command = [str(self.folder / "tools" / "setup.sh"), *arguments]
        if os.geteuid() == 0:
            command = [shutil.which("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        environment = {"PATH": str(self.bin), "MENGER_PACKAGES": str(self.packages), **environment}
        return subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )


class BuildTest(unittest.TestCase):
    def test_make_build_builds_every_library_that_the_documents_use(self):
        commands = subprocess.run(["make", "-n", "build"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        targets = re.search(r"tools/build\.sh build/release .*", commands)[0].split()
        # Named after its library, but for what has a static library of the same name.
        of_library = {"libmenger_runtime": "menger_runtime_library"}
        documents = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
        for library in set(re.findall(r"(libmenger_\w+)\.so", documents)) - {"libmenger_host", "libmenger_mujoco"}:
            self.assertIn(of_library.get(library, library.removeprefix("lib")), targets)


class SetupTest(SetUpCase):
    def test_another_distribution_is_told_what_to_install(self):
        (self.bin / "dpkg-query").unlink(missing_ok=True)
        done = self.run_setup("build g++ x\nbuild cmake x\n", "packages", "build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Install what matches: g++ cmake", done.stderr)
        self.assertIn("SKIP_PACKAGES=1", done.stderr)
        self.assertEqual(self.run_setup("build g++ x\n", "packages", "build", SKIP_PACKAGES="1").returncode, 0)

    def test_a_python_that_is_too_old_is_refused_with_what_would_be_right(self):
        (self.bin / "python3").unlink()
        done = self.run_setup("", "python", "build", MENGER_SYSTEM_PYTHON="false", MENGER_VENV=str(self.folder / "venv"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no Python 3.11 or newer", done.stderr)

    def test_an_unknown_torch_setting_is_refused(self):
        done = self.run_setup("", "python", "build", TORCH="maybe")
        self.assertEqual(done.returncode, 1)
        self.assertIn("TORCH is 'maybe'; it must be ON, OFF or CUDA", done.stderr)


class DebianSetupTest(SetUpCase):
    def test_missing_packages_are_named_with_the_command_that_installs_them(self):
        done = self.run_setup("build dpkg x\nbuild no-such-menger-a x\ntest no-such-menger-b x\n", "packages", "build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing Debian packages: no-such-menger-a\n", done.stderr)
        self.assertIn("apt-get install --no-install-recommends no-such-menger-a\n", done.stderr)
        self.assertNotIn("no-such-menger-b", done.stderr)

    def test_nothing_is_said_when_nothing_is_missing(self):
        done = self.run_setup("build dpkg x\n", "packages", "build")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_sudo_installs_what_is_missing(self):
        sudo = self.bin / "sudo"
        sudo.write_text('#!/bin/sh\n[ "$*" = "-n true" ] || echo "as root: $*"\n')
        sudo.chmod(0o755)
        (self.bin / "sh").symlink_to("/bin/sh")
        done = self.run_setup("build dpkg x\nbuild no-such-menger-a x\nbuild no-such-menger-b x\n", "packages", "build")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = [line for line in done.stderr.splitlines() if line.startswith("as root: ")]
        self.assertEqual(len(calls), 2, done.stderr)
        self.assertRegex(calls[0], "apt-get .* update$")
        self.assertRegex(calls[1], "apt-get .* install -y --no-install-recommends no-such-menger-a no-such-menger-b$")


class StepTest(unittest.TestCase):
    def test_a_failed_step_keeps_its_status_and_says_what_to_do(self):
        step = [str(ROOT / "tools" / "step.sh"), "Trying", "1 s", "Try harder.", "bash", "-c", "exit 7"]
        done = subprocess.run(step, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 7)
        self.assertIn("==> Trying (about 1 s)", done.stdout)
        self.assertIn("What to do: Try harder.", done.stderr)


def load_tests(loader, _, __):
    """Packages can be looked up where there is dpkg, and nowhere else."""
    cases = [SetupTest, StepTest] + [DebianSetupTest] * bool(shutil.which("dpkg-query"))
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)


if __name__ == "__main__":
    unittest.main()
