"""Every link of the documents leads somewhere, and every file that they name is there."""

import fnmatch
import re
import unittest

import blocks
import prose
from blocks import ROOT

FILE = re.compile(r"[\w.*{},-]+\.(?:cc|h|py|sh|md|toml|txt|proto|json|csv|cmake)")
PATH = re.compile(r"(?:[\w.*{},-]+/)+(?:[\w.*{},-]+)?")

# What looks like a file of the project and is none, with what it is.
NO_FILES = {
    ("CONTRIBUTING.md", "x.h"): "the reader's",
    ("CONTRIBUTING.md", "x.cc"): "the reader's",
    ("CONTRIBUTING.md", "x_test.cc"): "the reader's",
    ("README.md", "progress.csv"): "of a run folder",
    ("README.md", "summary.json"): "of a run folder",
    ("bench/README.md", ".peers/PEER"): "made by bench/peers/setup.sh",
    ("bench/README.md", "NAME.cc"): "the reader's",
    ("bench/README.md", "PEER_requirements.txt"): "one a peer",
    ("bench/README.md", "runs/benchmarks.md"): "written by bench/all.sh",
    ("docs/algorithms.md", "experiment.toml"): "of a run folder",
    ("docs/algorithms.md", "src/menger/algorithms/spo.h"): "of who follows the example",
    ("docs/environments.md", "ALE/Pong-v5"): "an environment",
    ("docs/environments.md", "observation/KEY"): "an array",
    ("docs/performance.md", "progress.csv"): "of a run folder",
    ("docs/policies.md", "observation/0"): "an array",
    ("docs/policies.md", "observation/1"): "an array",
    ("docs/policies.md", "observation/KEY"): "an array",
    ("docs/replay_files.md", "manifest.json"): "of an archive",
}


def anchor(heading):
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


class ReferencesTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        seen = 0
        for document in blocks.DOCUMENTS:
            folder = (ROOT / document).parent
            for number, line in blocks.read(document).prose:
                for link in re.findall(r'\]\(([^)\s]+)\)|src="([^"]+)"', line):
                    target, _, heading = "".join(link).partition("#")
                    if "://" in target:
                        continue
                    where, seen = f"{document}:{number}: {''.join(link)}", seen + 1
                    path = folder / target if target else ROOT / document
                    self.assertTrue(path.exists(), where)
                    if heading:
                        headings = blocks.read(path.resolve().relative_to(ROOT)).headings
                        self.assertIn(heading, [anchor(each) for each in headings], where)
        self.assertGreater(seen, 20)

    def test_files_that_are_named_are_there(self):
        tree = prose.tree()
        stale, seen = set(NO_FILES), 0
        for span in prose.spans():
            if not FILE.fullmatch(span.text) and not PATH.fullmatch(span.text):
                continue
            if span.text.startswith("build/release/bench/bench_"):
                continue  # Of commands_test.py.
            if (span.document, span.text) in NO_FILES:
                stale.discard((span.document, span.text))
                continue
            for path in prose.expand(span.text.rstrip("/")):
                # Pages name files from any folder above them.
                self.assertTrue(any(fnmatch.fnmatch(each, path) or fnmatch.fnmatch(each, f"*/{path}") for each in tree), span)
                seen += 1
        self.assertEqual(stale, set(), "no longer named, or there by now")
        self.assertGreater(seen, 100)

    def test_every_algorithm_is_in_the_table(self):
        rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/algorithms.md").read_text(), re.MULTILINE)
        self.assertEqual(rows, prose.ask("list", "algorithms", "--names").split())

    def test_libraries_that_are_named_are_built(self):
        lists = "".join((ROOT / path).read_text() for path in prose.tree() if path.endswith("CMakeLists.txt"))
        for span in prose.spans():
            if match := re.match(r"lib(menger_\w+)(?:\.so)?$", span.text):
                self.assertTrue(re.search(rf"add_library\({match[1]}(_library)? SHARED", lists), span)

    def test_folders_and_files_in_blocks_of_shell_are_there(self):
        for block in blocks.all_blocks():
            if block.language in ("", "indented"):
                for path in re.findall(r"(?:-I|\s)((?:src|bench|docs|tools|tests)/[\w./-]+)", block.text):
                    self.assertTrue((ROOT / path).exists(), f"{block}: {path}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
