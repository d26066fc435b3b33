"""The tables of node/states.h say which functions change states: the code has exactly these."""

import collections
import re
import unittest

from blocks import ROOT

NODE = ROOT / "src/menger/runtime/node"
ROW = re.compile(r'^    \{(\w+)::(\w+), \w+::(\w+), "(\w+::\w+)", "[^"]+"\}', re.MULTILINE)
FUNCTION = re.compile(r"^\S.*?\b(\w+::\w+)\([^;{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
CHANGE = re.compile(r"(?:node_\.states\.|states_->)Enter\(\s*(\w+)(?:\.|->)state,\s+(\w+)::State::(\w+)\)")


def owners_in_the_tables():
    owners = collections.defaultdict(set)
    for record, _, to, owner in ROW.findall((NODE / "states.h").read_text()):
        owners[owner].add((record.removesuffix("State"), to))
    return owners


def owners_in_the_code():
    owners = collections.defaultdict(set)
    for path in NODE.glob("*.cc"):
        for name, body in FUNCTION.findall(path.read_text()):
            for _, record, to in CHANGE.findall(body):
                owners[name].add((record, to))
    return owners


class StatesTest(unittest.TestCase):
    def test_each_change_of_a_state_has_its_row_and_each_row_its_change(self):
        self.assertEqual(owners_in_the_code(), owners_in_the_tables())

    def test_no_change_is_missed(self):
        text = "".join(path.read_text() for path in NODE.glob("*.cc"))
        self.assertEqual(len(CHANGE.findall(text)), len(re.findall(r"\bEnter\(", text)))


if __name__ == "__main__":
    unittest.main()
