"""What a Python environment needs is found, remembered in the run, or named with the command that mends it."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from program import PATIENCE_S, PROGRAM, ProgramTest

MODULE = '''
import gymnasium, numpy

class Walk(gymnasium.Env):
    """Ten steps."""
    observation_space = gymnasium.spaces.Box(0, 10, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.time += 1
        return numpy.full(1, self.time, numpy.float32), %s, self.time == 10, False, {}
'''
RECIPE = 'environment = "walk:Walk"\nalgorithm = "ppo"\nsteps = 512\n[collector]\nkind = "serial"\n[evaluation]\nepisodes = 2\n'
CHOOSING = ("MENGER_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX")


class FindingPythonTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        self.variables = {name: value for name, value in os.environ.items() if name not in CHOOSING}
        self.beside = self.folder / "project"
        self.beside.mkdir()
        (self.beside / "walk.py").write_text(MODULE % "1.0")
        (self.beside / "walk.toml").write_text(RECIPE)

    def run_in(self, folder, *arguments, **variables):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**self.variables, **variables})  # fmt: skip

    def interpreter(self, folder, says=None):
        """A folder like an activated environment's, whose interpreter is this one, or one that only says something."""
        python = self.folder / folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        act = f"echo {says} >&2; exit 3" if says else f'exec {sys.executable} "$@"'
        python.write_text(f"#!/bin/sh\n{act}\n")
        python.chmod(0o755)
        return python

    def test_a_module_beside_the_recipe_is_found_before_the_current_folder_and_again_by_evaluate_and_resume(self):
        (self.folder / "walk.py").write_text(MODULE % "-5.0")
        done = self.run_in(self.folder, "train", "project/walk.toml", "--out", "run", MENGER_PYTHON=sys.executable)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("final evaluation: mean 10.0", done.stdout)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        done = self.run_in(elsewhere, "evaluate", "../run", "--episodes", 2)  # Without MENGER_PYTHON, too.
        self.assertIn("mean 10", done.stdout, done.stderr)
        self.assertIn(f'python_found = "{sys.executable}"', (self.folder / "run" / "experiment.toml").read_text())
        done = self.run_in(elsewhere, "train", "--resume", "../run", "--set", "steps=1024")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("completed after 1024 steps", done.stdout)

    def test_the_current_folder_is_searched_after_the_recipes(self):
        (self.beside / "walk.py").rename(self.folder / "walk.py")
        done = self.run_in(self.folder, "train", "project/walk.toml", "--out", "run", MENGER_PYTHON=sys.executable)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_activated_environment_is_used_if_it_has_gymnasium(self):
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            self.interpreter(variable, says=f"here-is-{variable}")
            prefix = self.folder / variable
            (prefix / "lib" / "python3.11" / "site-packages" / "gymnasium").mkdir(parents=True)
            done = self.run_in(self.beside, "train", "walk.toml", **{variable: str(prefix)})
            self.assertIn(f"here-is-{variable}", done.stderr)
            done = self.run_in(self.beside, "train", "walk.toml", "--out", variable, MENGER_PYTHON=sys.executable,
                               **{variable: str(prefix)})  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_an_activated_environment_without_gymnasium_is_left_alone(self):
        self.interpreter("base", says="never")
        done = self.run_in(self.beside, "describe", "walk:Nobody", VIRTUAL_ENV=str(self.folder / "base"))
        self.assertNotIn("never", done.stderr)

    def test_all_missing_packages_are_one_message_with_one_command(self):
        (self.beside / "walk.py").write_text("import numpy, no_such_a.part\nfrom no_such_b import x\n" + MODULE % "1.0")
        done = self.run_in(self.beside, "train", "walk.toml", MENGER_PYTHON=sys.executable)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs the Python packages no_such_a and no_such_b", done.stderr)
        self.assertRegex(done.stderr, re.escape(f"{sys.executable} -m pip install no_such_a no_such_b"))
        self.assertNotIn("Traceback", done.stderr)

    def test_numpy_and_gymnasium_are_named_together(self):
        python = self.folder / "bare"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I -c "import sys; sys.path.insert(0, sys.argv.pop(1)); '
                          f'import runpy; del sys.argv[1:3]; runpy.run_module(\'menger.host\', run_name=\'__main__\', alter_sys=True)" '
                          f'"${{PYTHONPATH%%:*}}" "$@"\n')  # fmt: skip
        python.chmod(0o755)
        done = self.run_in(self.beside, "describe", "host:CartPole-v1", MENGER_PYTHON=str(python))
        self.assertIn("needs the Python packages numpy and gymnasium", done.stderr)

    def test_a_misspelt_native_name_is_guessed_before_python_is_tried(self):
        done = self.run_in(self.folder, "describe", "CartPol-v1", MENGER_PYTHON="/nowhere/python")
        self.assertIn("there is no environment 'CartPol-v1' (did you mean 'CartPole-v1'?)", done.stderr)
        self.assertNotIn("/nowhere", done.stderr)
        done = self.run_in(self.folder, "describe", "CartPole-v7", MENGER_PYTHON="/nowhere/python")
        self.assertIn("/nowhere", done.stderr)


class NeedsGymnasiumTest(unittest.TestCase):
    """What `make train` asks before it installs."""

    def needs(self, environment):
        root = pathlib.Path(__file__).resolve().parents[2]
        variables = {name: value for name, value in os.environ.items() if name not in CHOOSING}
        folder = pathlib.Path(self.enterContext(__import__("tempfile").TemporaryDirectory()))
        (folder / "mine.toml").write_text(f'# Mine.\nenvironment = "{environment}"\nalgorithm = "ppo"\n')
        done = subprocess.run([root / "tools/needs_gymnasium.sh", folder / "mine.toml"], env={**variables, "MENGER_PROGRAM": PROGRAM},
                              timeout=PATIENCE_S)  # fmt: skip
        return done.returncode == 0

    @unittest.skipUnless(shutil.which("sed") and shutil.which("bash"), "needs a shell")
    def test_recipes_that_python_plays_need_it(self):
        for environment, needed in (("my_module:MyEnv", True), ("host:CartPole-v1", True), ("FrozenLake-v1", True),
                                    ("CartPole-v1", False), ("ALE/Pong-v5", False), ("Hopper-v5", False)):  # fmt: skip
            self.assertEqual(self.needs(environment), needed, environment)


if __name__ == "__main__":
    unittest.main(verbosity=2)
