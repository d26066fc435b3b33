"""What `menger completion SHELL` offers, asked of the shell itself: bash, and zsh and fish where they are installed."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(os.environ.get("MENGER_PROGRAM", "build/release/menger")).resolve()
DEADLINE_SECONDS = 60
COMMANDS = [
    "check", "completion", "describe", "evaluate", "export", "list", "plot", "replay", "rollout", "runs", "status", "timeline", "train",
]  # fmt: skip


class Completions:
    """What every shell must offer. A shell's class gives offered(LINE): the set of words it offers at the line's end."""

    def setUp(self):
        # Where completion runs: a run folder and two files; and `menger` on the path, nothing of the user's own settings.
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "runs" / "one-1").mkdir(parents=True)
        (self.folder / "mine.toml").touch()
        self.environment = {
            "HOME": str(self.folder),
            "ZDOTDIR": str(self.folder),
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
        }

    def script(self, shell):
        path = self.folder / f"script.{shell}"
        path.write_text(subprocess.run([PROGRAM, "completion", shell], capture_output=True, text=True, check=True).stdout)
        return path

    def test_commands(self):
        self.assertEqual(self.offered("menger tr"), {"train"})
        self.assertLessEqual(set(COMMANDS), self.offered("menger "))

    def test_every_option_that_help_names(self):
        for command in ["", *COMMANDS]:
            text = subprocess.run([PROGRAM, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout
            options = set(re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", text, re.MULTILINE))
            self.assertIn("--help", options)
            self.assertEqual(self.offered(f"menger {command} --".replace("  ", " ")), options, command)

    def test_names_that_the_program_knows(self):
        self.assertEqual(self.offered("menger train cartpole_p"), {"cartpole_ppo", "cartpole_ppo_fast"})
        self.assertEqual(self.offered("menger train mi"), {"mine.toml"})
        self.assertEqual(self.offered("menger rollout Pend"), {"Pendulum-v1"})
        self.assertEqual(self.offered("menger describe coll"), {"collector"})
        self.assertEqual(self.offered("menger describe ppo"), {"ppo"})
        self.assertEqual(self.offered("menger list e"), {"environments"})
        self.assertEqual(self.offered("menger completion f"), {"fish"})

    def test_values_of_options(self):
        self.assertEqual(self.offered("menger train cartpole_ppo --device "), {"cpu", "cuda"})
        self.assertEqual(self.offered("menger evaluate runs/one-1 --checkpoint b"), {"best"})
        self.assertEqual(self.offered("menger export runs/one-1 --format "), {"onnx", "bundle"})
        self.assertLessEqual({"random", "mine.toml"}, self.offered("menger rollout CartPole-v1 --policy "))
        self.assertEqual(self.offered("menger train --seed "), set())

    def test_run_folders(self):
        for line in ("menger evaluate runs/o", "menger export runs/o", "menger plot runs/one-1 runs/o",
                     "menger train --resume runs/o", "menger train --init-from runs/o"):  # fmt: skip
            self.assertEqual({word.rstrip("/").removeprefix("runs/") for word in self.offered(line)}, {"one-1"}, line)


class BashTest(Completions, unittest.TestCase):
    def offered(self, line):
        words = line.split()
        if line.endswith(" "):
            words.append("")
        asked = f"""source {self.script("bash")}
            COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
            _menger; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(
            ["bash", "--norc", "-c", asked], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_a_value_after_an_equals_sign(self):
        self.assertEqual(self.offered("menger train --device = cu"), {"cuda"})
        self.assertEqual(self.offered("menger train --device ="), {"cpu", "cuda"})


class FishTest(Completions, unittest.TestCase):
    def offered(self, line):
        asked = f"source {self.script('fish')}; complete -C'{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", asked], env=self.environment, cwd=self.folder, capture_output=True, text=True,
            check=True
        )  # fmt: skip
        self.assertEqual(done.stderr, "")
        return {word.partition("\t")[0].rstrip("/") for word in done.stdout.splitlines()}


class ZshTest(Completions, unittest.TestCase):
    """zsh completes only in an interactive shell: it gets a terminal, and what it would show is written to a file besides."""

    SETUP = """
        PS1='' ; setopt nobeep ; unsetopt prompt_cr prompt_sp
        compadd() {  # Passed on as it came; unless it only asks what would match (-O, -A, -D), matches are written down.
          if [[ ${argv[1,(i)(-|--)]} != *-[OAD]* ]]; then
            local -a matches
            builtin compadd -A matches "$@"
            print -rl -- $matches >>offered
          fi
          builtin compadd "$@"
        }
        zle-line-init() { print -n READY }
        zle -N zle-line-init
        """

    def setUp(self):
        super().setUp()
        (self.folder / ".zshrc").write_text(f"{self.SETUP}\nsource {self.script('zsh')}\n")
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "--no-globalrcs", "-i"], self.environment)
        self.addCleanup(self.end)
        self.wait_for_the_line()

    def end(self):
        os.close(self.terminal)  # Hangs up.
        os.waitpid(self.process, 0)

    def wait_for_the_line(self):
        shown, deadline = b"", time.monotonic() + DEADLINE_SECONDS
        while b"READY" not in shown:
            ready, _, _ = select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(ready, f"zsh did not come back within {DEADLINE_SECONDS} s: {shown!r}")
            shown += os.read(self.terminal, 4096)
        return shown

    def offered(self, line):
        offered = self.folder / "offered"
        offered.unlink(missing_ok=True)
        os.write(self.terminal, line.encode() + b"\t\x15\n")  # Complete it, then empty the line and enter that.
        shown = self.wait_for_the_line()
        self.assertNotRegex(shown, rb"_(menger|arguments|alternative)[a-z_]*:\d+:", "zsh reports an error")
        return set(offered.read_text().split()) if offered.exists() else set()


def load_tests(loader, _, __):
    """The shells that are there: bash always is; zsh and fish are nothing that a build or a test needs besides."""
    there = [case for case, shell in ((BashTest, "bash"), (FishTest, "fish"), (ZshTest, "zsh")) if shutil.which(shell)]
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in there)


if __name__ == "__main__":
    unittest.main(verbosity=2)
