"""An exported policy does without the program what `menger evaluate` does with it: in Python, in C, in Gymnasium."""

import re
import shutil
import subprocess
import sys
import unittest

import gymnasium
import numpy

from exporting import BUILD, CARDS, CARDS_RECIPE, CONTINUOUS, OBSERVATIONS, Library, menger
from program import PATIENCE_S, ROOT, ProgramTest

PAIRS = """
import gymnasium, numpy
from gymnasium import spaces

class Pairs(gymnasium.Env):
    observation_space = spaces.Tuple((spaces.Box(-5, 5, (2,), numpy.float64), spaces.Dict({"code": spaces.Discrete(4)})))
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return (self.np_random.random(2), {"code": 1}), {}

    def step(self, action):
        return (self.np_random.random(2), {"code": int(action)}), 1.0, True, False, {}
"""

# Acts on the float32 observations of its standard input and prints the actions. Counts what is allocated meanwhile.
C_PROGRAM = """
#include <menger_policy.h>
#include <stdio.h>

static long allocations = 0;
void* __libc_malloc(size_t size);
void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

int main(int count, char** arguments) {
  char error[256];
  menger_policy* policy = menger_policy_open(count > 1 ? arguments[1] : "", error, sizeof error);
  menger_player* player;
  float observation[64];
  const void* observations[1];
  int64_t action[16];
  long before;
  if (policy == NULL) {
    puts(error);
    return 1;
  }
  player = menger_player_new(policy);
  if (allocations == 0) return 2;
  observations[0] = observation;
  while (fread(observation, sizeof(float), (size_t)menger_policy_observation(policy, 0).elements, stdin) > 0) {
    before = allocations;
    if (menger_player_act(player, observations, action) != MENGER_ACTED) return 3;
    if (allocations != before) return 4;
    printf("%d\\n", (int)action[0]);
  }
  menger_player_delete(player);
  menger_policy_close(policy);
  return 0;
}
"""


@unittest.skipUnless((BUILD / "libmenger_policy.so").exists(), "libmenger_policy.so is not built beside this program")
class ExportTest(ProgramTest):
    def train(self, text, name="run"):
        (self.folder / "recipe.toml").write_text(text)
        self.succeed("train", "recipe.toml", "--out", name)

    def quick(self):
        self.succeed("train", "quick.toml", "--out", "run")

    def returns(self, run, episodes, seed):
        """Mean, deviation and length as `menger evaluate` prints them."""
        text = self.succeed("evaluate", run, "--episodes", episodes, "--seed", seed).stdout
        return [float(number) for number in re.search(
            r"mean (\S+), standard deviation (\S+), minimum (\S+), maximum (\S+) over", text).groups()]

    def test_python_plays_in_gymnasium_what_evaluate_plays(self):
        self.quick()
        self.train(CONTINUOUS, "continuous")
        for run, name in (("run", "CartPole-v1"), ("continuous", "Pendulum-v1")):
            exported = self.succeed("export", run, "--out", f"{run}.menger").stdout
            self.assertIn("reads observation: float32", exported)
            policy = menger.load(self.folder / f"{run}.menger")
            self.assertEqual(policy.about["environment"], name)
            environment = gymnasium.make(name)
            returns = []
            for seed in range(11, 14):
                observation, _ = environment.reset(seed=seed)
                policy.reset()
                total, over = 0, False
                while not over:
                    observation, reward, terminated, truncated, _ = environment.step(policy.act(observation))
                    total, over = total + reward, terminated or truncated
                returns.append(total)
            expected = self.returns(run, 3, 11)
            found = [numpy.mean(returns), numpy.std(returns), min(returns), max(returns)]
            numpy.testing.assert_allclose(found, expected, atol=0.051)  # One digit is printed.

    def test_c_and_python_act_alike_on_batches_and_one_by_one(self):
        self.quick()
        self.train(CONTINUOUS, "continuous")
        self.train(CONTINUOUS + "[network]\nlayer_norm = true\n", "normalised")
        random = numpy.random.default_rng(5)
        for run, width in (("run", 4), ("continuous", 3), ("normalised", 3)):
            self.succeed("export", run, "--out", "policy.menger")
            observations = random.uniform(-3, 3, (OBSERVATIONS // 20, 20, width)).astype(numpy.float32)
            policy = menger.load(self.folder / "policy.menger")
            batched = numpy.array([policy.act(rows) for rows in observations])
            logits = policy.outputs
            self.assertEqual(batched.shape, (OBSERVATIONS // 20, 20, *policy.action.shape))
            self.assertEqual(batched.dtype, policy.action.dtype)
            library = Library(self.folder / "policy.menger")
            action = numpy.zeros(policy.action.shape, policy.action.dtype)
            for column in range(20):
                library.reset()
                for row in range(len(observations)):
                    self.assertEqual(library.act([observations[row, column]], action), 0)
                    if action.dtype == numpy.int64:
                        self.assertEqual(action, batched[row, column])
                    else:
                        numpy.testing.assert_allclose(action, batched[row, column], atol=1e-5)
            library.close()
            # One by one, with a memory of its own.
            policy.reset()
            for row in range(20):
                numpy.testing.assert_allclose(policy.act(observations[row, 0]), batched[row, 0], atol=1e-6)
            self.assertEqual(policy.outputs.shape, logits.shape[1:])

    def test_the_library_is_used_from_c_allocates_nothing_to_act_and_needs_nothing_but_the_c_library(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        self.quick()
        self.succeed("export", "run")  # To the run's own folder.
        (self.folder / "act.c").write_text(C_PROGRAM)
        subprocess.run([compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "act.c", "-o", "act",
                        f"-I{ROOT}/src/menger/policies/library", f"-L{BUILD}", "-lmenger_policy", f"-Wl,-rpath,{BUILD}"],
                       cwd=self.folder, check=True, timeout=PATIENCE_S)  # fmt: skip
        observations = numpy.random.default_rng(6).uniform(-1, 1, (100, 4)).astype(numpy.float32)
        acted = subprocess.run([self.folder / "act", "run/policy.menger"], cwd=self.folder, input=observations.tobytes(),
                               capture_output=True, check=True, timeout=PATIENCE_S)
        expected = menger.load(self.folder / "run/policy.menger").act(observations)
        self.assertEqual([int(line) for line in acted.stdout.split()], expected.tolist())
        needed = subprocess.run(["ldd", BUILD / "libmenger_policy.so"], capture_output=True, text=True, check=True).stdout
        for line in needed.splitlines():
            self.assertRegex(line, r"linux-vdso|libc\.so|libm\.so|ld-linux|libgcc_s")

    def test_what_cannot_be_read_is_refused_with_its_name(self):
        self.refuse("export", "nowhere", saying=["'nowhere'", "not a run folder"])
        self.quick()
        self.refuse("export", "run", "--checkpoint", "7", saying=["no checkpoint '7'", "newest, best"])
        self.refuse("export", "run", "--format", "pickle", saying=["pickle"])
        self.succeed("export", "run", "--out", "policy.menger", "--checkpoint", "best")
        path = self.folder / "policy.menger"
        content = path.read_bytes()
        for changed, why in ((b"nothing", "not a bundle"), (content[:-8], "cut short"),
                             (content[:-1] + bytes([content[-1] ^ 1]), "altered")):  # fmt: skip
            path.write_bytes(changed)
            for reader in (menger.load, Library):
                with self.assertRaisesRegex(ValueError, f"policy.menger.*{why}"):
                    reader(path)

    def test_observations_that_do_not_fit_are_refused_with_their_name(self):
        self.quick()
        self.succeed("export", "run", "--out", "policy.menger")
        policy = menger.load(self.folder / "policy.menger")
        self.assertIsInstance(policy.act([0, 0, 0, 0]), int)
        self.assertIsInstance(policy.act({"observation": numpy.zeros(4)}), int)
        with self.assertRaisesRegex(ValueError, r"'observation' has shape \(3,\); it must be \(4,\)"):
            policy.act(numpy.zeros(3))
        with self.assertRaisesRegex(ValueError, "has no 'observation': it has position"):
            policy.act({"position": numpy.zeros(4)})
        for wrong, why in ((numpy.array([0, 0, numpy.nan, 0]), r"'observation' holds nan at \(2,\); it must hold finite numbers"),
                           (numpy.full((2, 4), numpy.inf), r"'observation' holds inf at \(0, 0\)"),
                           (numpy.array(["a", "b", "c", "d"]), "'observation' is <U1; it must be float32"),
                           ("left", "'observation'"), (None, "'observation'"), ([[0, 0], [0]], "'observation' is a list of lists")):  # fmt: skip
            with self.assertRaisesRegex(ValueError, why):
                policy.act(wrong)

    def test_a_tuple_is_read_as_the_environment_has_it(self):
        (self.folder / "pairs.py").write_text(PAIRS)
        self.train(CARDS_RECIPE.replace("cards:Cards", "pairs:Pairs") + f"[host]\npython = '{sys.executable}'\n")
        self.succeed("export", "run", "--out", "policy.menger")
        policy = menger.load(self.folder / "policy.menger")
        self.assertEqual([leaf.name for leaf in policy.observation], ["observation/0", "observation/1/code"])
        place, code = numpy.float64([0.5, -1]), numpy.int64(2)
        action = policy.act((place, {"code": code}))
        chosen_by = policy.outputs
        for same in ([place, {"code": code}], {"observation/0": place, "observation/1/code": code}):
            self.assertEqual(policy.act(same), action)
            numpy.testing.assert_array_equal(policy.outputs, chosen_by)
        self.assertEqual(list(policy.act((numpy.stack([place] * 3), {"code": numpy.array([2, 2, 2])}))), [action] * 3)
        with self.assertRaisesRegex(ValueError, "has no 'observation/1/code': it has 1 arrays"):
            policy.act((place,))
        with self.assertRaisesRegex(ValueError, "is ndarray; it must be a dict that has 'observation/0', or a tuple with a number 0"):
            policy.act(place)

    def test_a_dict_with_a_mask_is_read_by_the_keys_of_the_environment(self):
        (self.folder / "cards.py").write_text(CARDS)
        self.train(CARDS_RECIPE + f"[host]\npython = '{sys.executable}'\n")
        self.succeed("export", "run", "--out", "policy.menger")
        policy = menger.load(self.folder / "policy.menger")
        names = {leaf.name for leaf in policy.observation}
        self.assertEqual(names, {"observation/suit", "observation/table/odds", "action_mask"})
        module = {}
        exec(CARDS, module)
        environment = module["Cards"]()
        library = Library(self.folder / "policy.menger")
        action = numpy.zeros((), numpy.int64)
        returns = []
        for seed in (3, 4):
            observation, _ = environment.reset(seed=seed)
            total, over = 0, False
            while not over:
                values = {"observation/suit": observation["suit"], "observation/table/odds": observation["table"]["odds"],
                          "action_mask": observation["action_mask"]}  # fmt: skip
                leaves = [numpy.array(values[leaf.name], leaf.dtype) for leaf in policy.observation]
                chosen = policy.act(observation)
                self.assertEqual((library.act(leaves, action), int(action)), (0, chosen))
                observation, reward, _, over, _ = environment.step(chosen)
                total += reward
            returns.append(total)
        numpy.testing.assert_allclose(numpy.mean(returns), self.returns("run", 2, 3)[0], atol=0.051)
        with self.assertRaisesRegex(ValueError, "'action_mask' allows none"):
            policy.act({**observation, "action_mask": numpy.zeros(5, numpy.uint8)})
        with self.assertRaisesRegex(ValueError, r"'observation/suit' has a value that is not in \[0, 4\)"):
            policy.act({**observation, "suit": 4})
        with self.assertRaisesRegex(ValueError, "a batch and others are not: '.*' is none"):
            policy.act({**observation, "suit": [1, 2]})

    def test_a_memory_is_the_callers_to_reset(self):
        short = ("--set", "steps=256", "--set", "collector.horizon=8", "--set", "ppo.minibatch_size=64", "--set",
                 "evaluation.episodes=1")  # fmt: skip
        trained = self.run_program("train", "cartpole_masked_ppo_lstm", *short, "--out", "run")
        if "needs the torch library" in trained.stderr:
            self.skipTest("this program was built without torch")
        self.succeed("export", "run", "--out", "policy.menger")
        policy = menger.load(self.folder / "policy.menger")
        self.assertTrue(policy.has_memory)
        random = numpy.random.default_rng(1)
        observations = random.uniform(-1, 1, (3, 2, *policy.observation[0].shape)).astype(numpy.float32)
        for observation in observations:
            policy.act(observation)
        last = policy.outputs.copy()
        # The first row alone begins anew; then both do.
        policy.reset([True, False])
        policy.act(observations[0])
        fresh = policy.outputs.copy()
        policy.reset()
        policy.act(observations[0])
        numpy.testing.assert_array_equal(policy.outputs[0], fresh[0])
        self.assertFalse(numpy.array_equal(policy.outputs[1], fresh[1]))
        for observation in observations[1:]:
            policy.act(observation)
        numpy.testing.assert_allclose(policy.outputs, last, atol=1e-6)
        with self.assertRaisesRegex(ValueError, r"call reset\(\)"):
            policy.act(observations[0, 0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
