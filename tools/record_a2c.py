"""Records three updates of Stable-Baselines3's A2C, for src/menger/algorithms/a2c_test.cc.

Run with an interpreter that has Stable-Baselines3 (bench/peers/setup.sh sb3):
    .peers/sb3/bin/python tools/record_a2c.py     rewrites src/menger/algorithms/a2c_test_values.h

The environment plays a script: episodes end by termination, by a time limit, by both at once, in the middle of a
collection pass and at its last step. Its rewards are large first and small later, so that gradients are clipped and not.
"""

import os

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.vec_env import DummyVecEnv

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "menger", "algorithms",
                      "a2c_test_values.h")
ENVIRONMENTS, STEPS, UPDATES, SIZE, ACTIONS, HIDDEN = 3, 5, 3, 3, 3, [6, 5]
TERMINATED, TRUNCATED = 1, 2
# By environment and step of the whole run.
ENDS = [{2: TRUNCATED, 6: TERMINATED, 9: TRUNCATED}, {4: TERMINATED, 7: TRUNCATED, 12: TRUNCATED | TERMINATED},
        {8: TRUNCATED, 10: TERMINATED, 14: TRUNCATED}]  # fmt: skip
REWARD_SCALE = [3.0, 0.3, 0.02, 0.0]  # By update, and for the step at which the recorder stops the run.


class Script(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-5, 5, (SIZE,), np.float32)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, index):
        self.index, self.steps, self.random = index, 0, np.random.default_rng(100 + index)

    def look(self):
        return self.random.normal(size=SIZE).astype(np.float32)

    def reset(self, *, seed=None, options=None):
        return self.look(), {}

    def step(self, action):
        end = ENDS[self.index].get(self.steps, 0)
        reward = REWARD_SCALE[self.steps // STEPS] * (self.random.normal() + action - 1)
        self.steps += 1
        return self.look(), float(reward), bool(end & TERMINATED), bool(end & TRUNCATED), {}


class Recorder(BaseCallback):
    """Keeps what the environments said, before the algorithm adds to it, and what every update left."""

    def __init__(self):
        super().__init__()
        self.rewards, self.finals = [], []
        self.observations, self.actions, self.values, self.parameters = [], [], [], []

    def _on_step(self):
        if self.num_timesteps > ENVIRONMENTS * STEPS * UPDATES:
            return False
        self.rewards.append(self.locals["rewards"].copy())
        for done, info in zip(self.locals["dones"], self.locals["infos"]):
            self.finals.append(info["terminal_observation"] if done else np.zeros(SIZE))
        return True

    def _on_rollout_start(self):
        self.parameters.append(flat_parameters(self.model.policy))

    def _on_rollout_end(self):
        buffer = self.model.rollout_buffer
        self.observations += [buffer.observations.copy(), self.locals["new_obs"][None].copy()]
        self.actions.append(buffer.actions.copy())
        self.values.append(buffer.values.copy())


def flat_parameters(policy):
    """In the order of our manifest: policy's layers, then value's; weights as [inputs, outputs]."""
    extractor, flat = policy.mlp_extractor, []
    for body, head in ((extractor.policy_net, policy.action_net), (extractor.value_net, policy.value_net)):
        for layer in [*body, head]:
            if isinstance(layer, torch.nn.Linear):
                flat += [layer.weight.detach().T.flatten(), layer.bias.detach()]
    return torch.cat(flat).numpy().copy()


def array(kind, name, values):
    body = ", ".join(f"{value:.7g}" for value in np.asarray(values).flatten())
    return f"inline constexpr {kind} {name}[] = {{{body}}};"


def record(optimiser, options):
    settings = {"net_arch": HIDDEN, "optimizer_class": optimiser, "optimizer_kwargs": options}
    model = A2C("MlpPolicy", DummyVecEnv([lambda i=i: Script(i) for i in range(ENVIRONMENTS)]), n_steps=STEPS,
                gamma=0.9, gae_lambda=0.95, ent_coef=0.05, vf_coef=0.5, max_grad_norm=1.0, seed=7, device="cpu",
                learning_rate=lambda left: 0.01 * left, policy_kwargs=settings)  # fmt: skip
    norms, clip = [], torch.nn.utils.clip_grad_norm_
    torch.nn.utils.clip_grad_norm_ = lambda *arguments: norms.append(float(clip(*arguments)))
    losses, recorder, train = [], Recorder(), model.train

    def train_and_note():
        train()
        losses.append([model.logger.name_to_value[f"train/{name}"] for name in ("policy_loss", "value_loss", "entropy_loss")])

    model.train = train_and_note
    # One pass more than is recorded: at the end of a run the learning rate is 0.
    model.learn(ENVIRONMENTS * STEPS * (UPDATES + 1), callback=recorder)
    torch.nn.utils.clip_grad_norm_ = clip
    return recorder, norms, np.array(losses)


def main():
    torch.set_num_threads(1)
    lines = ["#pragma once", "",
             f"// Written by tools/record_a2c.py with Stable-Baselines3 {stable_baselines3.__version__}, torch "
             f"{torch.__version__}; not for editing.", "", "namespace menger::recorded {", ""]  # fmt: skip
    options = {"alpha": 0.99, "eps": 1e-5}
    optimisers = {"Torch": torch.optim.RMSprop, "TensorFlow": RMSpropTFLike}
    records = {name: record(optimiser, options) for name, optimiser in optimisers.items()}
    recorder = records["Torch"][0]  # The script shows the same to both.
    ends = [[script.get(step, 0) for script in ENDS] for step in range(STEPS * UPDATES)]
    lines += ["// Of the rows of each pass and of the row after it.",
              array("float", "kA2cObservations", np.concatenate(recorder.observations)),
              "// 1: terminated, 2: truncated.", array("int", "kA2cEnds", ends),
              "// Last observations of the episodes that end at a row; zeros where none does.",
              array("float", "kA2cFinals", np.stack(recorder.finals)),
              array("float", "kA2cParameters", recorder.parameters[0])]  # fmt: skip
    for name, (recorder, norms, losses) in records.items():
        lines += ["", array("int", f"k{name}Actions", np.concatenate(recorder.actions).astype(int)),
                  array("float", f"k{name}Values", np.concatenate(recorder.values)),
                  array("double", f"k{name}Rewards", np.stack(recorder.rewards)),
                  "// After each update.",
                  array("float", f"k{name}Parameters", np.stack(recorder.parameters[1:])),
                  "// An update: policy loss, value loss, negative entropy; and the norm of the gradient before clipping.",
                  array("double", f"k{name}Losses", losses), array("double", f"k{name}Norms", norms)]  # fmt: skip
    lines += ["", "}  // namespace menger::recorded", ""]
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


main()
