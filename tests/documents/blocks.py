"""The code blocks of the documents: which there are, under which heading, and what of them C++ here includes.

    blocks.py FOLDER   writes the blocks in C++ to FOLDER, for #include "blocks/DOCUMENT/HEADING_NUMBER.declarations.inc" and
                       the like: .statements.inc has what follows the last function, type, namespace or include of a block
"""

import dataclasses
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What somebody reads who wants to use the system or to know how fast it is.
PATTERNS = ["docs/*.md", "bench/README.md", "examples/README.md"]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + sorted(
    str(path.relative_to(ROOT)) for pattern in PATTERNS for path in ROOT.glob(pattern)
)


@dataclasses.dataclass(frozen=True)
class Block:
    document: str
    heading: str  # The nearest above it.
    number: int  # From 1, of those under the heading.
    language: str  # As the fence names it; "indented" where there is no fence.
    line: int  # Of its first line.
    text: str

    @property
    def key(self):
        return self.document, self.heading, self.number

    @property
    def file(self):
        """Where its C++ is written, without what says which part."""
        heading = re.sub("[^a-z0-9]+", "_", self.heading.lower()).strip("_")
        return f"{pathlib.Path(self.document).stem.lower()}/{heading}_{self.number}"

    def __str__(self):
        return f"{self.document}:{self.line} (block {self.number} under '{self.heading}', {self.language or 'no language'})"


class Reader:
    """Takes a document's lines one by one; `blocks` and `prose`, lines with their numbers, are what it has found."""

    def __init__(self, document):
        self.document, self.heading = document, ""
        self.blocks, self.prose, self.headings = [], [], []
        self.fence = None  # Indentation and language of the one that is open.
        self.lines, self.first = [], 0
        self.after_blank, self.in_list = True, False

    def end_block(self, language):
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
        if self.lines:
            number = 1 + sum(block.heading == self.heading for block in self.blocks)
            self.blocks.append(Block(self.document, self.heading, number, language, self.first, "\n".join(self.lines) + "\n"))
        self.lines = []

    def take(self, number, line):
        if self.fence:
            if line.strip() == "```":
                self.end_block(self.fence[1])
                self.fence = None
            else:
                self.lines.append(line.removeprefix(self.fence[0]))
            return
        indented = line.startswith("    ") and (self.lines or (self.after_blank and not self.in_list))
        if indented or (self.lines and not line.strip()):
            self.first = self.first if self.lines else number
            self.lines.append(line[4:])
            return
        self.end_block("indented")
        self.take_prose(number, line)

    def take_prose(self, number, line):
        if match := re.fullmatch(r"( *)```(\S*)", line):
            self.fence, self.first = (match[1], match[2]), number + 1
            return
        if match := re.fullmatch(r"#+ +(.*)", line):
            self.heading = match[1]
            self.headings.append(match[1])
        self.after_blank = not line.strip()
        if line[:1].strip():
            self.in_list = bool(re.match(r"([-*+]|\d+\.) ", line))
        self.prose.append((number, line))


def read(document):
    reader = Reader(document)
    for number, line in enumerate((ROOT / document).read_text().splitlines(), 1):
        reader.take(number, line)
    reader.end_block("indented")
    if reader.fence:
        raise SystemExit(f"{document}: a block that begins at line {reader.first} has no end")
    return reader


def all_blocks():
    return [block for document in DOCUMENTS for block in read(document).blocks]


def parts(block):
    """{"declarations": (line, text), "statements": (line, text)} of a block in C or C++, as far as it has them."""
    lines = block.text.splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines, 1) if re.match(r"#include |\};\n|\}\n|\S.*\}\n|\}  // namespace", line)]
    cut = max(ends, default=0)
    found = {"declarations": (block.line, "".join(lines[:cut])), "statements": (block.line + cut, "".join(lines[cut:]))}
    return {name: part for name, part in found.items() if part[1].strip()}


def write(folder):
    wanted = {}
    for block in all_blocks():
        if block.language == "cpp":
            for name, (line, text) in parts(block).items():
                wanted[folder / "blocks" / f"{block.file}.{name}.inc"] = f'#line {line} "{block.document}"\n{text}'
    for path in set((folder / "blocks").rglob("*.inc")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:  # What has not changed is not compiled again.
            path.write_text(text)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
