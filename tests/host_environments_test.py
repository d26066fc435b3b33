"""Training on Python environments, with the processes of the whole killed from outside and from within."""

import os
import pathlib
import re
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "end_to_end"))
from program import PATIENCE_S, ProgramTest, newest_checkpoint  # noqa: E402

# What a user writes: a module beside the recipe.
ENVIRONMENT = '''
import os, subprocess, time
import gymnasium, numpy

class Corridor(gymnasium.Env):
    """Walk right, ten times."""
    observation_space = gymnasium.spaces.Box(0, 10, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, trouble=None, at=40, render_mode=None):
        self.trouble, self.at, self.steps, self.render_mode = trouble, at, 0, render_mode
        if trouble == "children":
            self.start_children()

    def start_children(self):
        """One beside the host, one in a session of its own, and one in another whose parent has ended."""
        sleep = ["sleep", "600"]
        beside, apart = subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)
        orphan = subprocess.run(["sh", "-c", "setsid sleep 600 > /dev/null & echo $!"], stdout=subprocess.PIPE, text=True)
        with open("children.txt", "a") as file:
            print(beside.pid, apart.pid, orphan.stdout.strip(), file=file)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return numpy.zeros(1, numpy.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps == self.at and self.trouble == "raise":
            raise RuntimeError("a wall where none was")
        if self.trouble in ("slow", "children"):
            time.sleep(0.001)
        self.place = max(0, self.place + 2 * action - 1)
        end = self.place == 10
        return numpy.array([self.place], numpy.float32), -1.0, end, self.steps % 50 == 0, {"place": self.place}

    def render(self):
        return numpy.full((4, 6, 3), 20 * self.place, numpy.uint8)

def corridors(num_envs, autoreset_mode=None, **arguments):
    """A vector environment that can be shown."""
    one = lambda: Corridor(**arguments)
    return gymnasium.vector.SyncVectorEnv([one] * num_envs, autoreset_mode=autoreset_mode)

def unseen(num_envs, autoreset_mode=None):
    """One that cannot."""
    return corridors(num_envs, autoreset_mode)

gymnasium.register("Corridor-v0", entry_point=Corridor, vector_entry_point=unseen)
'''


def hosts_in(folder):
    """The process numbers of hosts that run in a folder, zombies left out."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            if b"menger.host" in command and pathlib.Path(os.readlink(path / "cwd")) == folder.resolve():
                found.append(int(path.name))
        except OSError:
            pass  # It has ended, or is a zombie without a folder.
    return found


def lives(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class HostEnvironmentsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "corridor.py").write_text(ENVIRONMENT)

    def arguments(self, *more, name="run", environment="corridor:Corridor"):
        settings = [f"environment={environment}", f"host.python={sys.executable}", "evaluation.every=0", *more]
        return ["train", "quick.toml", "--out", name, *[word for setting in settings for word in ("--set", setting)]]

    def wait_for(self, what, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not (value := condition()):
            self.assertLess(time.monotonic(), deadline, f"{what} did not happen")
            time.sleep(0.01)
        return value

    def start_slow(self, *more, trouble="slow"):
        """A run that goes on until it is stopped, with its hosts."""
        process = self.start(*self.arguments("steps=10000000", f'host.arguments={{"trouble": "{trouble}"}}', *more))
        self.wait_for_checkpoint(process, "run", beyond=1)
        self.assertIsNone(process.poll(), "the run ended")
        return process, self.wait_for("a host", lambda: hosts_in(self.folder))

    def test_a_module_beside_the_recipe_trains(self):
        self.succeed(*self.arguments("collector.workers=2", "collector.kind=synchronous"))
        self.assertEqual(hosts_in(self.folder), [])

    def test_an_exception_is_told_with_its_traceback_and_no_host_stays(self):
        finished = self.run_program(*self.arguments('host.arguments={"trouble": "raise"}'))
        self.assertEqual(finished.returncode, 1, finished.stderr)
        for text in ("corridor:Corridor environment 0 (seed", "step 39", "RuntimeError: a wall where none was"):
            self.assertIn(text, finished.stderr)
        self.assertRegex(finished.stderr, r'\n  File ".*corridor.py", line')
        self.assertEqual(hosts_in(self.folder), [])

    def test_a_host_killed_from_outside_ends_the_run_with_its_cause(self):
        process, hosts = self.start_slow()
        os.kill(hosts[0], signal.SIGKILL)
        killed = time.monotonic()
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertLess(time.monotonic() - killed, 60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("was killed by SIGKILL", errors)
        self.assertIn("on_environment_error", errors)

    def test_with_restarts_a_killed_host_is_replaced_and_the_run_goes_on(self):
        process, hosts = self.start_slow("collector.on_environment_error=restart")
        os.kill(hosts[0], signal.SIGKILL)
        self.wait_for("a new host", lambda: set(hosts_in(self.folder)) - set(hosts))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("A new one begins fresh episodes (99 restarts left)", errors)

    def test_a_signal_to_every_process_ends_the_run_as_one_to_menger_does(self):
        process, hosts = self.start_slow()
        for number in [*hosts, process.pid]:
            os.kill(number, signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 143, errors)
        self.assertNotIn("host process", errors)
        self.assertEqual(hosts_in(self.folder), [])

    def test_a_stop_and_continue_costs_no_host(self):
        process, hosts = self.start_slow("host.step_deadline=1")
        for number in [process.pid, *hosts]:  # As Ctrl-Z does.
            os.kill(number, signal.SIGSTOP)
        time.sleep(2.5)
        # First menger alone: it finds its clock far ahead, and the host silent.
        for number in [process.pid, *hosts]:
            os.kill(number, signal.SIGCONT)
            time.sleep(0.2)
        self.wait_for_checkpoint(process, "run", beyond=newest_checkpoint(self.folder / "run"))
        self.assertEqual(hosts_in(self.folder), hosts)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, errors)

    def test_nothing_survives_menger_killed(self):
        process, _ = self.start_slow("collector.workers=2", "collector.kind=synchronous")
        before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        self.wait_for("the end of the hosts", lambda: not hosts_in(self.folder))
        if before:
            self.assertLessEqual({name for name in os.listdir("/dev/shm") if "menger" in name}, before)

    def children(self):
        """Those of the processes that the environments have started which are still there."""
        found = [int(word) for word in (self.folder / "children.txt").read_text().split()]
        self.assertTrue(found)
        return [process for process in found if lives(process)]

    def test_what_environments_start_ends_with_menger_however_it_ends(self):
        for number in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(number):
                process, _ = self.start_slow(trouble="children")
                self.assertGreaterEqual(len(self.children()), 4 * 3)
                process.send_signal(number)
                process.communicate(timeout=PATIENCE_S)
                self.wait_for("the end of the children", lambda: not self.children())
                self.wait_for("the end of the hosts", lambda: not hosts_in(self.folder))
                shutil.rmtree(self.folder / "run")

    def test_what_environments_start_ends_with_a_host_that_is_killed(self):
        process, hosts = self.start_slow(trouble="children")
        os.kill(max(hosts), signal.SIGKILL)  # The host: its supervisor came before it.
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertIn("was killed by SIGKILL", errors)
        self.assertEqual(self.children(), [])

    def test_a_run_of_a_vector_environment_can_be_recorded(self):
        from PIL import Image

        for environment in ("corridor:corridors", "corridor:Corridor-v0"):
            with self.subTest(environment):
                self.succeed(*self.arguments("host.vector=true", environment=environment, name=environment))
                played = self.succeed("evaluate", environment, "--record", "film.gif")
                steps = float(re.search(r"episode length: mean ([0-9.]+)", played.stdout)[1])
                with Image.open(self.folder / "film.gif") as film:
                    self.assertEqual((film.size, film.n_frames), ((6, 4), steps + 1))
                    self.assertEqual(film.convert("RGB").getpixel((0, 0)), (0, 0, 0))

    def test_a_vector_environment_that_cannot_be_shown_is_refused_with_what_to_do(self):
        self.succeed(*self.arguments("host.vector=true", environment="corridor:unseen"))
        finished = self.run_program("evaluate", "run", "--record", "film.gif")
        self.assertEqual(finished.returncode, 1, finished.stderr)
        self.assertIn('let it take the keyword render_mode="rgb_array", and render() return', finished.stderr)

    def test_a_resumed_run_begins_new_episodes_and_says_so(self):
        process, _ = self.start_slow()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(hosts_in(self.folder), [])
        process = self.start("train", "--resume", "run")
        text = ""
        deadline = time.monotonic() + PATIENCE_S
        while "its episodes begin anew" not in text and time.monotonic() < deadline:
            line = process.stderr.readline()
            if not line:
                break
            text += line
        self.assertIn("corridor:Corridor keeps no state that could be saved: its episodes begin anew", text)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130)

    def test_what_is_not_there_is_said(self):
        self.refuse(*self.arguments(environment="corridor:Korridor"), code=None, saying=["'Korridor'"])
        self.refuse(*self.arguments(environment="NoSuchThing-v7"), code=None, saying=["NoSuchThing"])


try:
    import gymnasium  # noqa: F401
except ImportError:
    HostEnvironmentsTest = unittest.skip("no gymnasium in this interpreter")(HostEnvironmentsTest)

if __name__ == "__main__":
    unittest.main()
