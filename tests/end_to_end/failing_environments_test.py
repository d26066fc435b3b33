"""Environments that fail in every way: what a user reads says each thing once, and no sentence runs into the next."""

import importlib.util
import os
import re
import sys
import unittest

from program import ProgramTest

MODULE = '''
import gymnasium, numpy, os, signal, sys
from gymnasium import spaces

class Good(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), numpy.float32)
    action_space = spaces.Discrete(2)
    time, seed = 0, None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed = self.seed if seed is None else seed
        return numpy.zeros(2, numpy.float32), {}

    def step(self, action):
        self.time += 1
        self.failing = self.time == 5 and self.seed in (2, 3, 7)  # Of training and of checks, but not of evaluations.
        if self.failing:
            self.fail()
        return numpy.zeros(2, numpy.float32), 1.0, self.time % 9 == 0, False, {}

    def fail(self):
        pass

class MakeRaises(Good):
    def __init__(self):
        raise ValueError("no track file")

class MakeExits(Good):
    def __init__(self):
        sys.exit("enough")

class MakeVanishes(Good):
    def __init__(self):
        os._exit(3)

class ResetRaises(Good):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("the gate is shut")

class ResetVanishes(Good):
    def reset(self, *, seed=None, options=None):
        os._exit(3)

class StepRaises(Good):
    def fail(self):
        raise RuntimeError("the wheel came off")

class StepRaisesFrom(Good):
    def fail(self):
        try:
            {}["nothing"]
        except KeyError as error:
            raise RuntimeError("the wheel came off") from error

class StepExits(Good):
    def fail(self):
        sys.exit("enough")

class StepVanishes(Good):
    def fail(self):
        os._exit(3)

class StepTalksAndVanishes(Good):
    def fail(self):
        print("good bye", flush=True)
        os._exit(3)

class StepFaults(Good):
    def fail(self):
        os.kill(os.getpid(), signal.SIGSEGV)

class StepIsNan(Good):
    def step(self, action):
        seen, *rest = super().step(action)
        return (seen * (numpy.nan if self.failing else 1), *rest)

class Refused(Good):
    """Seldom gives a reward that can be taken, or an observation of its shape."""
    def __init__(self, how):
        self.how = how

    def step(self, action):
        seen, reward, *rest = super().step(action)
        return {"nan": (seen, numpy.nan, *rest), "shape": (seen[:1], reward, *rest), "raise": None}[self.how] or {}["nothing"]

class CloseRaises(Good):
    def close(self):
        raise RuntimeError("the door is stuck")
'''
RECIPE = """
environment = "mine:Good"
algorithm = "ppo"
steps = 64
[collector]
kind = "serial"
environments = 2
horizon = 16
[evaluation]
episodes = 1
"""
WORDS = {"MakeRaises": "ValueError: no track file", "MakeExits": "SystemExit: enough", "MakeVanishes": "ended with exit status 3",
         "ResetRaises": "RuntimeError: the gate is shut", "StepRaises": "RuntimeError: the wheel came off",
         "StepRaisesFrom": "RuntimeError: the wheel came off", "StepExits": "SystemExit: enough",
         "StepVanishes": "ended with exit status 3", "StepTalksAndVanishes": "ended with exit status 3",
         "StepFaults": "was killed by SIGSEGV", "StepIsNan": "finite"}  # fmt: skip
# A sentence that begins without a stop or a line before it, stops that follow stops.
RUN_TOGETHER = re.compile(r"[^.\n] (It ran|collector\.on_environment_error|A new one|A fresh|Nothing was|What was)|\.[;:] |\w\.\. ")


class FailingEnvironmentsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "mine.py").write_text(MODULE)
        (self.folder / "mine.toml").write_text(RECIPE)
        os.environ["MENGER_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "MENGER_PYTHON")

    def train(self, name, *settings, code=1, run=None):
        words = [word for each in (f"environment=mine:{name}", *settings) for word in ("--set", each)]
        done = self.run_program("train", "mine.toml", *words, "--out", run or name + str(len(settings)))
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def assert_readable(self, said, name):
        """Each line once, without the time and whose it is; nothing runs together."""
        self.assertEqual(said.count(WORDS[name]), 1, said)
        self.assertNotRegex(said, RUN_TOGETHER)
        lines = [re.sub(r"^(\d\d:\d\d:\d\d [IWE] )?(mine:\w+ prints: )?", "", line).strip() for line in said.splitlines()]
        lines = [line for line in lines if re.search(r"\w", line) and not line.startswith("Traceback")]
        self.assertEqual(sorted(lines), sorted(set(lines)), said)

    def test_an_error_of_training_is_told_once(self):
        for name in WORDS:
            self.assert_readable(self.train(name), name)

    def test_a_check_tells_it_once(self):
        for name in WORDS:
            done = self.run_program("check", f"mine:{name}")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assert_readable(done.stdout + done.stderr, name)
            self.assertNotIn('"environment":', done.stderr)

    def test_a_restart_is_told_once(self):
        for name in WORDS:
            if name.startswith("Step"):
                said = self.train(name, "collector.on_environment_error=restart", "steps=8", "collector.environments=1", code=0)
                warning = said[said.index(" W ") :]
                self.assertIn(WORDS[name], warning)
                self.assertNotRegex(warning, RUN_TOGETHER)
                self.assertRegex(warning, r"(\n|\. )A (new one begins fresh episodes|fresh episode takes its place)")

    def test_how_a_host_ended_is_one_line(self):
        error = self.train("StepVanishes").splitlines()[-1]
        self.assertRegex(error, r"^menger: error: after 0 steps: mine:StepVanishes environments 0\.\.1 \(seeds 2\.\.3\), step 4: its host "
                                r"process ended with exit status 3\. It ran in \S+, as MENGER_PYTHON says \(host\.python goes before\)\. "
                                r"collector\.on_environment_error = restart would go on with fresh episodes\. Nothing was learned yet, "
                                r"but the run is there: `menger train --resume StepVanishes0` goes on from there with fresh "
                                r"environments, under other seeds$")  # fmt: skip

    def test_a_budget_that_is_used_up_is_named_with_what_used_it_up(self):
        for how, text in (("nan", "its reward is nan; it must be a finite number"), ("raise", "KeyError: 'nothing'"),
                          ("shape", "its 'observation' has shape (1,); its observation space says (2,)")):  # fmt: skip
            said = self.train("Refused", f'host.arguments={{"how": "{how}"}}', "collector.on_environment_error=restart",
                              "collector.restart_budget=3", run=how)  # fmt: skip
            error = said[said.index("menger: error: ") :]
            self.assertRegex(error, r"mine:Refused environment \d \(seed \d\), step \d: ")
            for each in (text, "collector.restart_budget = 3 is used up."):
                self.assertEqual(error.count(each), 1, error)
            self.assertNotRegex(said, RUN_TOGETHER)
            self.assertGreaterEqual(said.count("A fresh episode takes its place."), 2, said)
        said = self.train("ResetVanishes", "collector.on_environment_error=restart", "collector.restart_budget=1")
        self.assertEqual(said.count("collector.restart_budget = 1 is used up."), 1, said)

    def test_what_was_not_seen_is_told_with_the_error(self):
        done = self.run_program("--log", "warning", "check", "mine:StepTalksAndVanishes")
        self.assertRegex(done.stdout, r"wrong: step \d+: its host process ended with exit status 3; the last it printed:\n    good bye\n")

    def test_a_traceback_begins_in_the_users_code(self):
        (self.folder / "broken.py").write_text("x = {}\nx['nothing']\n")
        (self.folder / "leaves.py").write_text("import sys\nsys.exit(4)\n")
        for module, last in (("broken", "KeyError: 'nothing'"), ("leaves", "SystemExit: 4")):
            done = self.run_program("check", f"{module}:Any")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"wrong: {module}:Any, when its module was imported: {last}\nTraceback (most recent call last):\n  File "
                          f'"{(self.folder / module).resolve()}.py", line 2', done.stdout)  # fmt: skip
            self.assertNotIn("importlib", done.stdout)

    def test_what_close_raises_is_told_once(self):
        said = self.train("CloseRaises", code=0)
        self.assertEqual(said.count("close (nothing is lost): RuntimeError: the door is stuck"), 4, said)  # So many environments.
        self.assertNotIn("prints: mine:CloseRaises", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
