"""The commands that the documents name in passing: those of the README's table run, the others have commands, flags and options
that there are."""

import re
import shlex
import subprocess
import unittest

import prose
from blocks import ROOT
from workplace import PATIENCE_S, QUICK, Workplace, missing

# What the commands of the README's table are given besides, to take no time.
README_COMMANDS = {
    "list": "",
    "describe ppo": "",
    "train cartpole_ppo --set ppo.clip=0.1": QUICK,
    "check my_module:MyEnvironment": "",
    "train cartpole_ppo --seeds 5": QUICK,
    "evaluate runs/cartpole_ppo-1 --episodes 100": "--set evaluation.steps_max=50",
    "evaluate runs/pong_ppo-1 --record pong.gif": "",
    "runs": "",
    "plot runs/cartpole_ppo-1 runs/cartpole_a2c-1 --out curves.png": "",
    "export runs/cartpole_ppo-1 --out cartpole.onnx": "",
    "status": "",
    "rollout CartPole-v1 --steps 500 --out trace.csv": "",
}


class ReadmeTest(Workplace):
    def test_every_command_of_the_table_runs(self):
        prefix = "build/release/menger "
        found = [span.text for span in prose.spans() if span.document == "README.md" and span.text.startswith(prefix)]
        self.assertEqual(sorted(text.removeprefix(prefix) for text in found), sorted(README_COMMANDS))
        for name in ("cartpole_ppo-1", "cartpole_a2c-1", "pong_ppo-1"):
            self.have_run(name)
        for command, more in README_COMMANDS.items():
            with self.subTest(command):
                self.run_one(f"{prefix}{command} {more}")

    def run_one(self, line):
        if " plot " in line and missing("matplotlib"):
            print(f"not run, without matplotlib, of which tests/end_to_end/plot_test.py tells: {line}")
            return
        if " status" in line:
            with self.job():
                self.run_line(line)
            return
        self.run_line(line)
        if written := re.search(r"--(?:out|record) (\S+)", line):
            self.assertGreater((self.folder / written[1]).stat().st_size, 0)


class CommandsTest(unittest.TestCase):
    def assert_known(self, named, known, span):
        self.assertEqual(sorted(set(named) - known), [], span)

    def words(self, *programs):
        """(span, its words) of those spans that begin with one of the programs."""
        for span in prose.spans():
            words = span.text.replace("[", "").replace("]", "").replace("...", "").split()
            if words and words[0] in programs:
                yield span, words

    def test_commands_of_the_program_have_the_flags_that_are_named(self):
        of_program = prose.flags_of_program()
        seen = 0
        for span, words in self.words("menger", "build/release/menger"):
            command = next((word for word in words[1:] if word in of_program), "")
            self.assertTrue(command or len(words) == 1 or words[1].startswith("--"), f"{span}: no such command")
            self.assert_known(prose.flags_in(span.text), of_program[command], span)
            seen += 1
        self.assertGreater(seen, 30)

    def test_what_is_set_is_an_option(self):
        sections = {name.partition(".")[0] for name in prose.options() if "." in name}
        seen = 0
        for span in prose.spans():
            named = re.findall(r"--set ([\w.]+)=", span.text)
            if match := re.match(r"([a-z]+)\.([a-z][a-z0-9_]*)(?: *=|$)", span.text):
                is_file = match[2] in ("h", "cc", "py", "toml", "so", "csv", "json", "md")
                named += [f"{match[1]}.{match[2]}"] if match[1] in sections and not is_file else []
            for name in named:
                self.assert_known([name], prose.options(), span)
                seen += 1
        self.assertGreater(seen, 15)

    def test_flags_that_stand_alone_are_some_command_s(self):
        everywhere = set().union(*prose.flags_of_program().values())
        for path in [*(ROOT / "bench").glob("*.*"), *(ROOT / "bench/peers").glob("*.py")]:
            everywhere |= prose.flags_of_benchmark(path) if path.suffix in (".py", ".cc") else set()
        for span in prose.spans():
            if span.text.startswith("--"):
                self.assert_known(prose.flags_in(span.text), everywhere, span)

    def test_targets_of_make_are_there(self):
        for span, words in self.words("make"):
            for word in words[1:]:
                variable, _, value = word.partition("=")
                if value:
                    self.assertTrue(re.search(rf"\b{variable}\b", (ROOT / "Makefile").read_text()), span)
                elif word != "bench-NAME":
                    benchmark = word.removeprefix("bench-")
                    self.assertTrue(word == benchmark or list((ROOT / "bench").glob(f"{benchmark}.*")), span)
                    subprocess.run(["make", "-n", word], cwd=ROOT, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)

    def test_recipes_that_are_named_are_there(self):
        known = {path.stem for folder in ("experiments", "bench/recipes") for path in (ROOT / folder).glob("*.toml")}
        seen = 0
        for span in prose.spans():
            named = re.findall(r"(?:RECIPE=|menger train )([a-z0-9_]+)(?![\w./])", span.text)
            named += re.findall(r"^[a-z0-9_]+_(?:ppo|a2c|dqn|es)$", span.text)
            self.assert_known(named, known, span)
            seen += len(named)
        self.assertGreater(seen, 20)

    def test_benchmarks_have_the_flags_that_are_named(self):
        seen = 0
        for span in prose.spans():
            sources = [source for word in shlex.split(span.text.replace("'", "")) if (source := prose.source_of_benchmark(word))]
            if not sources or span.text.endswith("_NAME"):
                continue
            self.assertTrue(sources[0].exists(), f"{span}: there is no {sources[0].relative_to(ROOT)}")
            self.assert_known(prose.flags_in(span.text), prose.flags_of_benchmark(sources[0]), span)
            seen += 1
        self.assertGreater(seen, 50)

    def test_tests_and_targets_of_the_build_are_there(self):
        lists = "".join((ROOT / path).read_text() for path in prose.tree() if path.endswith("CMakeLists.txt"))
        sources = "".join((ROOT / path).read_text() for path in prose.tree() if path.endswith("_test.cc"))
        for span, words in self.words("ninja"):  # -C FOLDER TARGET
            target = re.sub(r"^menger_(\w+)_test$", r"\1", words[3])
            self.assertTrue(re.search(rf"\((menger_)?{target}\b", lists), span)
        for span in prose.spans():
            if match := re.search(r"--gtest_filter=\*(\w+)\*", span.text):
                self.assertTrue(match[1] in sources, span)


if __name__ == "__main__":
    unittest.main(verbosity=2)
