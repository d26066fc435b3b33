"""`menger check`, what environments print, evaluations that end, and what `menger evaluate` can be told."""

import importlib.util
import os
import pty
import signal
import subprocess
import sys
import time
import unittest

from program import PATIENCE_S, PROGRAM, ProgramTest

MODULE = '''
import gymnasium, numpy, os, random, sys, time
from gymnasium import spaces

class Good(gymnasium.Env):
    """A line of ten places, with every kind of leaf."""
    metadata = {"render_modes": ["rgb_array"]}
    observation_space = spaces.Dict({"place": spaces.Discrete(10), "lamps": spaces.MultiBinary(3),
                                     "camera": spaces.Box(0, 255, (7, 7, 3), numpy.uint8),
                                     "speed": spaces.Box(numpy.float32([-1, 0]), numpy.float32([1, 5]))})
    action_space = spaces.Discrete(2)
    limit, render_mode = 10, None

    def __init__(self, talk=0, render_mode=None):
        self.talk, self.render_mode = talk, render_mode
        print("a good one is made")

    def observe(self):
        return {"place": self.place, "lamps": numpy.zeros(3, numpy.int8), "camera": numpy.zeros((7, 7, 3), numpy.uint8),
                "speed": numpy.zeros(2, numpy.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.place = 0, int(self.np_random.integers(3))
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        if self.talk:
            print("line", self.time, flush=True)
        self.place = min(9, self.place + int(action))
        return self.observe(), 0.0123, self.time == self.limit, False, {"is_success": 1.0}

    def render(self):
        return numpy.zeros((4, 6, 3), numpy.uint8)

class Chatty(Good):
    """Says something at each of its steps, slowly enough for a progress bar in between."""
    steps = 0
    def step(self, action):
        time.sleep(0.02)
        self.steps += 1
        print("step", self.steps, flush=True)
        return super().step(action)

class Endless(Good):
    limit = -1

class Slow(Good):
    def step(self, action):
        time.sleep(0.4)
        return super().step(action)

class Bounds(Good):
    observation_space = spaces.Box(-1, 1, (2,), numpy.float32)
    def observe(self):
        return numpy.array([0.0, 3.0])

class Nan(Bounds):
    def observe(self):
        return numpy.array([0.0, numpy.nan if self.time == 5 else 0.0], numpy.float32)

class Code(Good):
    def observe(self):
        return {**super().observe(), "place": self.time}

class Old(Bounds):
    def step(self, action):
        return numpy.zeros(2, numpy.float32), 0.0, False, {}

class Random(Bounds):
    def observe(self):
        return numpy.array([0.0, random.random()], numpy.float32)

class Masked(Good):
    """Two of five actions are allowed at a time, and of five numbers one is outside its bounds."""
    action_space = spaces.Discrete(5, start=1)
    observation_space = spaces.Dict({"action_mask": spaces.MultiBinary(5), "far": spaces.Box(0, 1, (5,), numpy.float32)})
    none_at = -1
    def observe(self):
        self.allowed = [] if self.time == self.none_at else [self.time % 5, (self.time + 2) % 5]
        mask = numpy.array([i in self.allowed for i in range(5)], numpy.int8)
        return {"action_mask": mask, "far": numpy.full(5, 2 + self.time, numpy.float32)}
    def step(self, action):
        if action - 1 not in self.allowed:
            raise ValueError(f"{action} is forbidden")
        return super().step(0)

class Stuck(Masked):
    none_at = 4

class Ends(Good):
    """Does not come back from its fourth step, or from being made."""
    def __init__(self, how, at="step"):
        super().__init__()
        self.how, self.at = how, at
        if at == "made":
            self.end()
    def end(self):
        {"hang": lambda: time.sleep(600), "abort": os.abort, "exit": lambda: sys.exit(3), "_exit": lambda: os._exit(3)}[self.how]()
    def step(self, action):
        if self.time == 3:
            self.end()
        return super().step(action)

class Unseen(Good):
    """Cannot be shown: it takes no render_mode."""
    def __init__(self):
        super().__init__()

class Blind(Good):
    """Takes one, and shows nothing."""
    def render(self):
        raise NotImplementedError

class Unspaced(gymnasium.Env):
    pass

class Misspaced(Good):
    action_space = 2

def nothing():
    return None

class NoSeed(Good):
    def reset(self):
        return super().reset()

class Raises(Good):
    def step(self, action):
        return {}["nothing"]
'''
RECIPE = 'environment = "mine:Good"\nalgorithm = "ppo"\nsteps = 256\n[collector]\nkind = "serial"\n[evaluation]\nepisodes = 2\n'


def shown(written):
    """The lines that a terminal shows of what was written to it."""
    lines, line, column, at = [], "", 0, 0
    while at < len(written):
        if written.startswith("\033[K", at):
            line, at = line[:column], at + 2
        elif written[at] == "\r":
            column = 0
        elif written[at] == "\n":
            lines, line, column = [*lines, line], "", 0
        else:
            line, column = line[:column] + written[at] + line[column + 1 :], column + 1
        at += 1
    return [*lines, line]


class CheckingTest(ProgramTest):
    def setUp(self):
        super().setUp()
        missing = [name for name in ("gymnasium", "numpy") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{sys.executable} lacks {', '.join(missing)}: pip install -r tools/requirements_test.txt")
        (self.folder / "mine.py").write_text(MODULE)
        (self.folder / "mine.toml").write_text(RECIPE)
        os.environ["MENGER_PYTHON"] = sys.executable
        self.addCleanup(os.environ.pop, "MENGER_PYTHON")

    def check(self, name):
        done = self.run_program("check", f"mine:{name}")
        return done.returncode, done.stdout + done.stderr

    def train(self, *settings, run="run"):
        return self.succeed("train", "mine.toml", "--out", run, *(word for each in settings for word in ("--set", each)))

    def test_a_good_environment_is_shown_as_menger_takes_it(self):
        status, said = self.check("Good")
        self.assertEqual(status, 0, said)
        for text in ("observation/place () of int64: 1 code, read as 10 numbers", "observation/lamps (3,) of uint8: 3 flags",
                     "observation/camera (3, 7, 7) of uint8: an image [channels, height, width], read as numbers of 0 to 1",
                     "observation/speed (2,) of float32: 2 numbers", "action: one of 2 choices",
                     "network of a recipe of two lines: mlp", "mine:Good can be trained on\n"):  # fmt: skip
            self.assertIn(text, said)
        self.assertRegex(said, r"speed: \d+ steps/s of one alone")

    def test_faults_are_named_with_the_users_line(self):
        for name, *texts in (("Nan", "wrong: step 4: its 'observation' holds a number that is not finite"),
                             ("Code", "wrong: step 9: its 'observation/place' is 10, which is not in Discrete(10)"),
                             ("Old", "wrong: step 0: step returned 4 values, as gym's did before 0.26"),
                             ("Raises", "wrong: step 0: KeyError: 'nothing'", 'mine.py:', 'return {}["nothing"]')):  # fmt: skip
            status, said = self.check(name)
            self.assertEqual(status, 1, said)
            for text in texts:
                self.assertIn(text, said)

    def test_notes_do_no_harm_by_themselves(self):
        for name, *texts in (("Bounds", "is float64 where its space says float32", "reset: element (1,) of its 'observation' is 3.0, outside its bounds -1.0 to 1.0"),
                             ("Random", "with one seed and the same actions differ at reset"),
                             ("Endless", "no episode ended in")):  # fmt: skip
            status, said = self.check(name)
            self.assertEqual(status, 0, said)
            for text in texts:
                self.assertIn("note: ", said)
                self.assertEqual(said.count(text), 1, said)

    def test_forbidden_actions_are_not_played(self):
        status, said = self.check("Masked")
        self.assertEqual(status, 0, said)
        status, said = self.check("Stuck")
        self.assertEqual(status, 1, said)
        self.assertIn("wrong: step 4: its 'action_mask' allows none of its 5 actions; it must allow one", said)

    def test_values_outside_their_bounds_are_one_note_a_leaf(self):
        _, said = self.check("Masked")
        self.assertEqual(said.count("note: "), 1, said)
        self.assertRegex(said, r"reset: element \(0,\) of its 'observation/far' is 2.0, outside its bounds 0.0 to 1.0; "
                               r"(\d+) of \1 observations left them")  # fmt: skip

    def test_random_steps_at_the_start_of_training_are_allowed_ones(self):
        self.train("environment=mine:Masked", "collector.decorrelation_steps=9", run="masked")

    def test_who_hangs_or_ends_the_process_is_told_the_step_and_the_deadline(self):
        for how, at, *texts in (("hang", "step", "wrong: step 3: its host process did not answer within 1 s", "(step_deadline is"),
                                ("hang", "made", "wrong: when it was made: its host process did not start within 8 s", "(start_deadline is"),
                                ("abort", "step", "wrong: step 3: its host process was killed by SIGABRT"),
                                ("_exit", "made", "wrong: when it was made: its host process ended with"),
                                ("exit", "step", "wrong: step 3: SystemExit: 3 (")):  # fmt: skip
            arguments = f'host.arguments={{"how": "{how}", "at": "{at}"}}'
            deadlines = ("--set", "host.step_deadline=1", "--set", f"host.start_deadline={8 if at == 'made' else 60}")
            done = self.run_program("check", "mine:Ends", "--set", arguments, *deadlines)
            self.assertEqual(done.returncode, 1, done.stderr)
            for text in texts:
                self.assertIn(text, done.stdout)
            self.assertNotIn("menger: error", done.stderr)

    def test_a_native_environment_has_nothing_to_check(self):
        self.refuse("check", "CartPole-v1", saying=["CartPole-v1 is the program's own"], code=1)

    def test_what_an_environment_prints_is_seen_once_and_bounded(self):
        said = self.train('host.arguments={"talk": 1}').stderr
        self.assertEqual(said.count("mine:Good prints: a good one is made"), 1, said)
        self.assertEqual(said.count("mine:Good prints: line 7\n"), 1, said)

    def test_on_a_terminal_what_is_printed_does_not_share_the_line_of_the_bar(self):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        settings = ("environment=mine:Chatty", "steps=60", "collector.environments=1", "collector.horizon=10", "evaluation.episodes=1")
        train = subprocess.Popen([PROGRAM, "train", "mine.toml", *(word for each in settings for word in ("--set", each))],
                                 cwd=self.folder, stdout=subprocess.DEVNULL, stderr=end)  # fmt: skip
        os.close(end)
        written = b""
        try:
            while piece := os.read(terminal, 4096):
                written += piece
        except OSError:  # It has ended.
            pass
        self.assertEqual(train.wait(PATIENCE_S), 0)
        self.assertGreater(written.count(b"\r["), 5)  # So often the bar was drawn.
        lines = shown(written.decode())
        for line in lines:
            self.assertNotRegex(line, r"\[[#.]+\].* I |prints: .*\[[#.]+\]")
        told = [line for line in lines if "prints: step " in line]
        self.assertGreaterEqual(len(told), 60)
        for line in told:
            self.assertRegex(line, r"^\d\d:\d\d:\d\d I mine:Chatty prints: step \d+$")

    def test_the_first_observation_outside_its_bounds_is_told(self):
        said = self.train("environment=mine:Bounds").stderr
        self.assertEqual(said.count("outside the bounds"), 1, said)
        self.assertIn("W mine:Bounds environment 0, reset: element 1 of its 'observation' is 3, outside the bounds that its "
                      "observation space declares, -1 to 1;", said)  # fmt: skip
        self.assertNotIn("bounds", self.train("environment=mine:Good", run="good").stderr)

    def test_a_metric_that_no_episode_tells_is_told_once_with_those_there_are(self):
        said = self.train('host.metrics=["is_sucess","is_success"]').stderr
        self.assertEqual(said.count("host.metrics names"), 1, said)
        self.assertIn("W mine:Good: host.metrics names 'is_sucess', which was not in info at the end of the first 10 episodes; at the "
                      "end of the last there was ['is_success']", said)  # fmt: skip

    def test_an_evaluation_without_a_time_limit_ends(self):
        said = self.train("environment=mine:Endless", "evaluation.steps_max=150")
        self.assertIn("2 of 2 episodes had not ended after 150 steps and were cut there", said.stderr)
        played = self.succeed("evaluate", "run", "--episodes", 3, "--set", "evaluation.steps_max=70").stdout
        self.assertIn("episode length: mean 70.0", played)
        self.assertIn("3 of 3 episodes had not ended after 70 steps", played)

    def test_who_waits_for_a_slow_environment_is_told_what_is_going_on(self):
        said = self.train("environment=mine:Slow", "steps=48", "collector.environments=1", "collector.horizon=48",
                          "evaluation.episodes=1", "ppo.minibatch_size=16").stderr  # fmt: skip
        self.assertRegex(said, r"collecting: \d+ steps in \d+ s \([\d.]+ steps/s\), about \d:\d\d left of 48 steps")

    def test_a_slow_run_confirms_a_stop_at_once_and_ends_at_a_second_one(self):
        settings = ("environment=mine:Slow", "collector.environments=1", "collector.horizon=256", "collector.kind=serial")
        train = self.start("train", "mine.toml", "--out", "run", *(word for each in settings for word in ("--set", each)))
        self.wait_for_lines(train, "training ppo")
        time.sleep(2)  # Some steps, unless the machine is busy.
        asked = time.monotonic()
        train.send_signal(signal.SIGINT)
        said = self.wait_for_lines(train, "stopping, once this is done and saved")
        self.assertLess(time.monotonic() - asked, 80)  # A slab takes 100.
        self.assertRegex(said, r"collecting: (\d+ s so far|\d+ steps in \d+ s \([\d.]+ steps/s\), about \d:\d\d left of 256 steps); "
                               r"a second Ctrl-C ends the run at once, as of its last checkpoint\n$")  # fmt: skip
        train.send_signal(signal.SIGINT)
        train.communicate(timeout=80)
        self.assertEqual(train.returncode, 128 + signal.SIGINT)

    def wait_for_lines(self, process, text):
        """The first line on standard error that has the text."""
        while line := process.stderr.readline():
            if text in line:
                return line
        self.fail(f"ended without saying {text}")

    def test_evaluate_says_how_it_acts_and_prints_digits_enough(self):
        self.train()
        played = self.succeed("evaluate", "run", "--episodes", 2).stdout
        self.assertIn("mine:Good, greedy actions:", played)
        self.assertIn("mean 0.1230, standard deviation 0.0000", played)
        self.assertIn("sampled actions", self.succeed("evaluate", "run", "--episodes", 2, "--stochastic").stdout)
        self.train("algorithm=dqn", "replay.min_size=32", run="dqn")
        self.assertIn("mine:Good, greedy actions:", self.succeed("evaluate", "dqn", "--episodes", 2).stdout)  # 0, by default.
        self.assertIn("greedy actions but for a share of 0.25 (dqn.evaluation_epsilon)",
                      self.succeed("evaluate", "dqn", "--episodes", 2, "--set", "dqn.evaluation_epsilon=0.25").stdout)  # fmt: skip
        self.refuse("evaluate", "dqn", "--stochastic", saying=["dqn has no actions to sample from", "evaluation_epsilon"])

    def test_ones_own_environment_is_recorded(self):
        self.train()
        self.succeed("evaluate", "run", "--record", "film.gif")
        self.assertEqual((self.folder / "film.gif").read_bytes()[:4], b"GIF8")

    def test_what_cannot_be_recorded_is_told_why(self):
        for name, *texts in (("Unseen", "mine:Unseen cannot be recorded, because it takes no render_mode: let it take the keyword",
                              'render_mode="rgb_array"'),
                             ("Blind", "mine:Blind has no render(): to be recorded, it must return")):  # fmt: skip
            self.train(f"environment=mine:{name}", run=name)
            self.refuse("evaluate", name, "--record", "film.gif", code=1, saying=texts)
            self.assertNotIn("Traceback", self.run_program("evaluate", name, "--record", "film.gif").stderr)

    @unittest.skipIf(importlib.util.find_spec("pygame"), "nothing is missing")
    def test_what_a_picture_of_gymnasiums_lacks_is_one_line_with_one_command(self):
        (self.folder / "mine.toml").write_text('environment = "CartPole-v1"\nalgorithm = "ppo"\nsteps = 64\n')
        self.train("evaluation.episodes=1")
        done = self.run_program("evaluate", "run", "--record", "film.gif")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for text in ("host:CartPole-v1 needs what", "-m pip install 'gymnasium[classic-control]'"):
            self.assertIn(text, done.stderr)

    def test_check_and_train_say_alike_what_is_no_environment(self):
        for name, *texts in (("Unspaced", "mine:Unspaced makes a Unspaced, which has no observation_space; a gymnasium.Env is needed"),
                             ("Misspaced", "which has 2 as its action_space;"),
                             ("nothing", "mine:nothing makes a NoneType, which has no observation_space;")):  # fmt: skip
            done = self.run_program("train", "mine.toml", "--set", f"environment=mine:{name}")
            self.assertNotIn("Traceback", done.stderr)
            for said in (done.stderr, self.check(name)[1]):
                for text in texts:
                    self.assertIn(text, said)

    def test_a_name_without_its_colon_is_hinted_at(self):
        for name, meant in (("mine.Good", "'mine:Good' is the Good of a Python module mine"),
                            ("mine", "'mine:NAME' is the class NAME of a Python module mine")):  # fmt: skip
            self.refuse("check", name, saying=[f"there is no environment '{name}'", meant], code=None)
            self.refuse("train", "mine.toml", "--set", f"environment={name}", saying=[meant], code=None)

    def test_hints_follow_their_sentence(self):
        said = self.run_program("train", "mine.toml", "--set", "environment=mine:NoSeed").stderr
        self.assertIn("unexpected keyword argument 'seed'. Its reset takes no seed", said)

    @unittest.skipIf(importlib.util.find_spec("Box2D"), "nothing is missing")
    def test_what_a_recording_lacks_is_one_line_with_one_command(self):
        (self.folder / "mine.toml").write_text('environment = "LunarLander-v3"\nalgorithm = "ppo"\nsteps = 64\n')
        self.train("evaluation.episodes=1")
        self.refuse("evaluate", "run", "--record", "film.gif", code=1,
                    saying=["host:LunarLander-v3 needs what", "-m pip install 'gymnasium[box2d]'"])  # fmt: skip

    def test_bounds_that_differ_by_element_are_described(self):
        said = self.succeed("describe", "mine:Good").stdout
        self.assertIn("[0] -1 to 1, [1] 0 to 5", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
