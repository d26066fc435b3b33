"""Where memory ends, what it was for is said: with the setting that asks for so much, and never by a crash."""

import resource
import unittest

from program import QUICK, ProgramTest

_MIB = 1 << 20


class MemoryTest(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "quick.toml").write_text(QUICK[: QUICK.index("[ppo]")])
        if "+" in self.succeed("--version").stdout.rsplit(",", 1)[1]:
            self.skipTest("a sanitizer needs more addresses than there are memory")

    def refuse_in(self, mebibytes, settings, *saying):
        """The program may have so much address space: nothing here takes the machine's memory."""
        words = [word for each in settings for word in ("--set", each)]
        self.refuse("train", "quick.toml", *words, "--out", "run", code=1, saying=saying,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes * _MIB, mebibytes * _MIB)))  # fmt: skip

    def test_a_network_that_cannot_be_is_refused_before_it_is_made(self):
        self.refuse_in(2_000, ["network.hidden=[65536, 65536]"], "out of memory for a network of 8590", "network.hidden = [65536, 65536]",
                       "it takes 96.0 GiB", "can have 2.0 GiB")  # fmt: skip
        self.assertFalse((self.folder / "run").exists())

    def test_a_slab_that_cannot_be_is_refused_before_it_is_made(self):
        self.refuse_in(2_000, ["collector.environments=1000000", "collector.horizon=1000"],
                       "out of memory for a slab of collector.environments = 1000000 x collector.horizon = 1000 steps", "it takes ")  # fmt: skip

    def test_a_replay_that_cannot_be_is_named_with_its_options(self):
        dqn = ["algorithm=dqn", "steps=100000"]
        self.refuse_in(2_000, [*dqn, "replay.capacity=1000000000"],
                       "out of memory for replay (replay.capacity = 1000000000, without its steps): it takes 128", "can have 2.0 GiB")  # fmt: skip
        self.refuse_in(2_000, [*dqn, "replay.bytes_max=3000000000"], "replay.bytes_max = 3000000000): it takes 2.", "can have 2.0 GiB")
        self.refuse_in(2_000, [*dqn, "replay.bytes_max=2000000000"], "out of memory for replay (replay.capacity = ", " = ")

    def test_a_replay_of_a_derived_size_takes_what_there_is(self):
        """The steps of so large a capacity are more than the process may have; those of the run are not."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1_500 * _MIB, 1_500 * _MIB))
        finished = self.succeed("train", "quick.toml", "--set", "algorithm=dqn", "--set", "steps=2000", "--set", "replay.min_size=100", "--set",
                                "replay.capacity=9000000", "--out", "run", preexec_fn=limit)  # fmt: skip
        self.assertIn("replay.capacity may need ", finished.stdout + finished.stderr)

    def test_wherever_memory_ends_the_part_that_wanted_it_is_named(self):
        for mebibytes in range(60, 140, 20):
            self.refuse_in(mebibytes, ["network.hidden=[1024, 1024]"], "out of memory for ", " = ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
