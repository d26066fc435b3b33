"""Every code block of the documents is compiled, run, or compared with what it shows: each in one way, said here.

Blocks in C++ are compiled and run by the programs beside this file, which include them.
"""

import collections
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import blocks
from blocks import HERE, ROOT
from workplace import PATIENCE_S, PROGRAM, QUICK, Workplace

WAYS = collections.defaultdict(list)  # By key of a block: the names of what tests it.


def tests(*key, number=1):
    """Marks a test as that of the block with this document, heading and number."""

    def mark(function):
        WAYS[(*key, number)].append(function.__name__)
        return lambda self: function(self, self.blocks[(*key, number)].text)

    return mark


def shape(text):
    """A text without its numbers."""
    return re.sub(r"\d[\d,]*(\.\d+)?", "#", text.strip())


def commands(text):
    return [line.partition("#")[0].strip() for line in text.splitlines()]


class BlocksTest(Workplace):
    blocks = {block.key: block for block in blocks.all_blocks()}

    def test_every_block_is_tested_in_one_way(self):
        ways = {key: list(names) for key, names in WAYS.items()}
        by_file = {block.file: block for block in self.blocks.values() if block.language == "cpp"}
        included = collections.Counter(
            name for path in HERE.glob("*.cc") for name in re.findall(r'#include "blocks/(.*)\.inc"', path.read_text())
        )
        whole = {f"{file}.{part}" for file, block in by_file.items() for part in blocks.parts(block)}
        self.assertEqual(sorted(included), sorted(whole), "of each block in C++ all is included, and nothing else")
        self.assertEqual([name for name, times in included.items() if times > 1], [])
        for block in by_file.values():
            ways.setdefault(block.key, []).append("C++")
        for key, block in self.blocks.items():
            self.assertEqual(len(ways.get(key, [])), 1, f"{block} is tested by {ways.get(key, 'nothing')}: say in one way how")
        self.assertEqual([key for key in ways if key not in self.blocks], [], "no such block")

    def test_blocks_are_found_where_they_are(self):
        reader = blocks.Reader("page.md")
        text = (
            "# A\n```cpp\nint a;\n\n# no heading\n```\n- item\n\n    of the item\n\n"
            "Text\n    of a paragraph\n\n    x\n\n      y\n\n## B\n    z\n"
        )
        for number, line in enumerate(text.splitlines(), 1):
            reader.take(number, line)
        reader.end_block("indented")
        self.assertEqual([(block.heading, block.number, block.language, block.line, block.text) for block in reader.blocks],
                         [("A", 1, "cpp", 3, "int a;\n\n# no heading\n"), ("A", 2, "indented", 14, "x\n\n  y\n")])  # fmt: skip
        program = "#include <a>\nstruct A {\n  int b;\n};\nvoid F() { g(); }\n\nA a({\n    1});\nF();\n"
        found = blocks.parts(blocks.Block("page.md", "A", 1, "cpp", 10, program))
        self.assertEqual(found["statements"], (15, "\nA a({\n    1});\nF();\n"))

    @tests("README.md", "Menger")
    def test_the_first_commands_are_there(self, text):
        install, *targets = commands(text)
        self.assertRegex(install, "^apt-get install -y( [a-z]+)+$")
        for program in install.split()[3:]:
            self.assertTrue(shutil.which(program), program)
        for target in targets:
            self.assertRegex(target, "^make [a-z]+$")
            subprocess.run([*target.split(), "-n"], cwd=ROOT, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)

    @tests("README.md", "What you see")
    def test_what_is_seen_looks_as_shown(self, text):
        prompt, *shown = text.splitlines()
        said = self.run_line(prompt.removeprefix("$ "))
        # How far it is, which a terminal shows as a bar.
        lines = [line for line in said.splitlines() if " I steps " not in line]
        run = pathlib.Path(lines[-1].removeprefix("run folder: "))
        lines = [line.replace(str(run), "runs/cartpole_ppo-1") for line in lines]
        self.assertEqual([shape(line) for line in lines], [shape(line) for line in shown])
        for name in ("experiment.toml", "progress.csv", "summary.json"):
            self.assertTrue((self.folder / run / name).exists(), name)

    @tests("docs/algorithms.md", "A recipe of two lines")
    def test_a_recipe_of_two_lines_trains(self, text):
        (self.folder / "two.toml").write_text(text)
        self.run_line("menger train two.toml --set steps=512 --set evaluation.episodes=1")

    @tests("docs/algorithms.md", "Adding one", number=3)
    def test_an_algorithm_of_ones_own_trains_by_two_lines(self, text):
        (self.folder / "two.toml").write_text(text)
        program = pathlib.Path(PROGRAM).parent / "tests/documents/documented_own_algorithm"
        self.run_line(f"{program} train two.toml --set steps=512 --set evaluation.episodes=1")

    @tests("docs/architecture.md", "The house")
    def test_the_folders_are_those_of_the_tree(self, text):
        named, above = set(), []
        for line in text.splitlines():
            indentation = len(line) - len(line.lstrip())
            above = above[:indentation // 2]
            for name in re.findall(r"(?:^ *|  +)([\w/]+)/(?=  +|$)", line):
                folder = "/".join([*above, name])
                self.assertTrue((ROOT / folder).is_dir(), f"there is no {folder}/")
                named.add(folder)
            if match := re.match(r" *([\w/]+)/(?=  |$)", line):
                above = [*above, match[1]]
        there = {str(path.relative_to(ROOT)) for path in (ROOT / "src/menger").iterdir() if path.is_dir()}
        self.assertEqual(there - named, set(), "not in the tree")

    @tests("docs/environments.md", "Your own environment, in five lines")
    def test_an_environment_of_ones_own_is_trained_on(self, text):
        (self.folder / "own.toml").write_text(text)
        self.run_line(f"menger train own.toml {QUICK} --out runs/own")
        self.assertIn("is_success", (self.folder / "runs/own/progress.csv").read_text().splitlines()[0])

    @tests("docs/replay.md", "As a server")
    def test_a_run_uses_a_replay_server(self, text):
        config, serve, train, info = commands(text)
        self.run_line(config)
        server = subprocess.Popen(["bash", "-c", f"exec {serve}"], cwd=self.folder, env=self.environment(), stderr=subprocess.PIPE, text=True)
        try:
            self.assertIn("serving", server.stderr.readline())
            self.run_line(f"{train} --set steps=10500 --set evaluation.episodes=1 --set evaluation.every=0 --out runs/served")
            self.assertIn("replay: 10000 of 10000 items", self.run_line(info))
        finally:
            server.kill()
            server.communicate(timeout=PATIENCE_S)

    @tests("docs/replay.md", "With Reverb's names")
    @unittest.skipUnless((PROGRAM.parent / "libmenger_replay.so").exists(), "this build has no libmenger_replay.so")
    def test_a_program_in_reverb_s_names_runs(self, text):
        (self.folder / "replay.py").write_text(text)
        self.assertEqual(self.run_line(f"{sys.executable} replay.py"), "(3, 4) (2,)\n")

    @tests("docs/replay.md", "In a C++ program of your own", number=2)
    def test_a_project_with_replay_is_configured(self, text):
        self.configure_project(text, self.blocks[("docs/replay.md", "In a C++ program of your own", 1)].text)

    @tests("docs/performance.md", "Performance, measured")
    def test_the_tables_are_replaced(self, text):
        (self.folder / "docs").mkdir()
        (self.folder / "runs").mkdir(exist_ok=True)
        page = (ROOT / "docs/performance.md").read_text()
        (self.folder / "docs/performance.md").write_text(page)
        (self.folder / "runs/benchmarks.md").write_text("new tables\n")
        self.run_line(text)
        kept, mark, _ = page.partition("<!-- measured -->\n")
        self.assertEqual((self.folder / "docs/performance.md").read_text(), kept + mark + "new tables\n")

    def check_labels(self, source, labels):
        """Output of a benchmark that takes minutes: its labels at least are those of the program."""
        program = (ROOT / source).read_text()
        self.assertGreater(len(labels), 5)
        for label in labels:
            self.assertTrue(label in program, f"{source} prints no '{label}'")

    @tests("docs/performance.md", "b. Collection")
    def test_the_table_of_collectors_has_the_labels_of_its_program(self, text):
        titles = [line for line in text.splitlines() if not re.search(r"\d$|%$|x$", line) and line.strip()]
        labels = [word for line in titles if ":" not in line for word in line.split() if word.isalpha() and word != "each"]
        self.check_labels("bench/collection.cc", [*labels, *(line.partition(":")[0] for line in titles if ":" in line)])

    @tests("docs/performance.md", "Kernels of small networks")
    def test_the_benchmarks_of_kernels_are_there(self, text):
        names = {re.split("[/ ]", line)[0] for line in text.splitlines()[3:]}
        self.check_labels("bench/mlp.cc", [f"BENCHMARK({name})" for name in names])

    @tests("docs/policies.md", "Policies that leave")
    def test_policies_are_exported_as_shown(self, text):
        for line in text.splitlines():
            command, file = line.split("#")
            self.have_run(re.search(r"runs/(\S+)", command)[1])
            said = self.run_line(command)
            self.assertTrue((self.folder / file.partition(":")[0].strip()).exists(), line)
            self.assertIn("reads observation", said)

    def have_bundle(self):
        self.have_run("cartpole_ppo-1")
        self.run_line("menger export runs/cartpole_ppo-1 && cp runs/cartpole_ppo-1/policy.menger .")

    @tests("docs/policies.md", "Python")
    def test_a_policy_acts_in_python(self, text):
        self.have_bundle()
        (self.folder / "act.py").write_text(
            "import numpy\nobservation, observations = numpy.zeros(4), numpy.zeros((3, 4))\n"
            f"{text}\nprint(action in (0, 1), actions.shape)\n"
        )
        self.assertEqual(self.run_line(f"{sys.executable} act.py"), "True (3,)\n")

    def write_c(self, text):
        """The program of the page, in a main that has an observation."""
        include, _, rest = text.partition("\n")
        (self.folder / "act.c").write_text(
            f"{include}\n#include <stdio.h>\n\nint main(void) {{\nconst float observation[4] = {{0, 0, 0, 0}};\n{rest}\n"
            'puts(policy != NULL && (action == 0 || action == 1) ? "acted" : "did not act");\nreturn 0;\n}\n'
        )

    @tests("docs/policies.md", "C")
    def test_a_policy_acts_in_c(self, text):
        self.have_bundle()
        self.write_c(text)
        warnings = "-Wall -Wextra -Werror -pedantic"
        self.run_line(f"{self.blocks[('docs/policies.md', 'C', 2)].text.strip()} {warnings}")
        self.assertEqual(self.run_line("./a.out"), "acted\n")
        for taken, given_back in (("policy_open", "policy_close(policy)"), ("player_new", "player_delete(player)")):
            self.assertLess(text.index(f"menger_{taken}"), text.index(f"menger_{given_back}"))

    @tests("docs/policies.md", "C", number=2)
    def test_c_is_compiled_by_the_documented_command(self, text):
        self.write_c(self.blocks[("docs/policies.md", "C", 1)].text)
        self.run_line(text)

    @tests("docs/runtime.md", "The runtime: tasks, actors and objects", number=2)
    def test_a_project_of_ones_own_is_configured(self, text):
        self.configure_project(text, self.blocks[("docs/runtime.md", "The runtime: tasks, actors and objects", 1)].text)

    def configure_project(self, lists, program):
        project = self.folder / "project"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir()
        (project / "menger").symlink_to(ROOT)
        (project / "CMakeLists.txt").write_text(lists)
        (project / "own.cc").write_text(program)
        self.run_line("cmake -S project -B project/build -G Ninja && ninja -C project/build -n own")

    @tests("docs/runtime.md", "Seeing into a job")
    def test_a_job_is_looked_at(self, text):
        with self.job() as job:
            status, metrics, timeline = commands(text)
            said = self.run_line(status)
            self.assertIn(f"process {job.pid}", said)
            for word in ("worker", "memory", "finished", "actor", "restarts", "replayed", "objects", "free"):
                self.assertIn(word, said)
            self.assertIn("menger_tasks_total", self.run_line(metrics))
            json.loads(self.run_line(f"{status} --json"))
            self.run_line(timeline)
            self.assertTrue(json.loads((self.folder / shlex.split(timeline)[-1]).read_text())["traceEvents"])

    @tests("docs/runtime.md", "From Python")
    @unittest.skipUnless((PROGRAM.parent / "libmenger_runtime.so").exists(), "this build has no libmenger_runtime.so")
    def test_a_program_in_ray_s_names_runs(self, text):
        (self.folder / "squares.py").write_text(text)
        self.assertEqual(self.run_line(f"{sys.executable} squares.py"), "[0, 1, 4, 9]\n")

    @tests("docs/runtime.md", "Python on several machines")
    @unittest.skipUnless((PROGRAM.parent / "libmenger_runtime.so").exists(), "this build has no libmenger_runtime.so")
    def test_a_program_in_ray_s_names_joins_a_cluster(self, text):
        (self.folder / "where.py").write_text(text)
        head = subprocess.Popen(
            [PROGRAM, "node", "--head", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, env=self.environment(), text=True
        )
        self.addCleanup(head.wait, PATIENCE_S)
        self.addCleanup(head.terminate)
        self.addCleanup(head.stdout.close)
        address = head.stdout.readline().strip()
        self.assertEqual(self.run_line(f"MENGER_ADDRESS={address} {sys.executable} where.py"), "True\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
