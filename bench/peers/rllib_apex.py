#!/usr/bin/env python3
"""RLlib's DQN (its new interfaces) with several processes that collect, which is what it has since its Ape-X went: environment steps a
second, learning included.

    rllib_apex.py RECIPE [--seconds 40] [--runners 2] [--fragment STEPS]

Network, batch, intensity, replay and environments are those of the recipe, a .toml file that trains DQN; the environments are shared
out among the runners, whose exploration is all alike (RLlib has no spread). A fragment, the steps of an environment between two turns
of learning, is the recipe's horizon, where nothing else is said. The learner has 1 thread, in the process that also has the replay. The
clock starts after the first iteration that learned. One line, "RESULT " and a JSON object; "intensity" is what really was learned.
"""

import argparse
import json
import time
import tomllib

import ray
import torch
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig


def configured(recipe, runners, fragment):
    dqn, replay, optimiser = recipe["dqn"], recipe["replay"], recipe["optimiser"]
    steps_per_update = replay["batch_size"] / replay["training_intensity"]
    network = DefaultModelConfig(fcnet_hiddens=recipe["network"]["hidden"], fcnet_activation=recipe["network"]["activation"])
    return (
        DQNConfig()
        .environment(recipe["environment"])
        .rl_module(model_config=network)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=recipe["collector"]["environments"] // runners,
                     rollout_fragment_length=fragment)
        .learners(num_learners=0)
        # RLlib takes the process that learns for a runner more, though it collects nothing where there are others.
        .training(training_intensity=replay["training_intensity"] * runners / (runners + 1),
                  train_batch_size_per_learner=replay["batch_size"], lr=dqn["learning_rate"], adam_epsilon=optimiser["epsilon"],
                  grad_clip=optimiser["max_gradient_norm"], grad_clip_by="global_norm", gamma=dqn["discount"],
                  double_q=dqn["double"], dueling=dqn["duelling"], n_step=dqn["n_step"], epsilon=dqn["epsilon_end"],
                  td_error_loss_fn="mse", target_network_update_freq=int(dqn["target_every"] * steps_per_update),
                  num_steps_sampled_before_learning_starts=replay["min_size"],
                  replay_buffer_config={"type": "PrioritizedEpisodeReplayBuffer", "capacity": replay["capacity"],
                                        "alpha": replay["priority_exponent"], "beta": dqn["importance_exponent"]})
        .reporting(min_sample_timesteps_per_iteration=1, min_time_s_per_iteration=1)
    )  # fmt: skip


class Updates:
    """Counts a learner's updates."""

    def __init__(self, learners):
        self.made, self.update, learners.update = 0, learners.update, self

    def __call__(self, *arguments, **options):
        self.made += 1
        return self.update(*arguments, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--runners", type=int, default=2)
    parser.add_argument("--fragment", type=int)
    options = parser.parse_args()
    with open(options.recipe, "rb") as file:
        recipe = tomllib.load(file)
    fragment = options.fragment or recipe["collector"]["horizon"]
    ray.init(num_cpus=6, include_dashboard=False, log_to_driver=False)
    algorithm = configured(recipe, options.runners, fragment).build_algo()
    torch.set_num_threads(1)
    updates = Updates(algorithm.learner_group)

    def turn():
        """Steps and updates since the start, after one more iteration."""
        return int(algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"]), updates.made

    start_steps, start_updates = turn()
    while start_updates == 0:
        start_steps, start_updates = turn()
    start = time.perf_counter()
    while time.perf_counter() - start < options.seconds:
        end_steps, end_updates = turn()
    seconds = time.perf_counter() - start
    steps, made = end_steps - start_steps, end_updates - start_updates
    line = {"peer": "rllib", "version": ray.__version__, "environment": recipe["environment"], "runners": options.runners,
            "fragment": fragment, "steps": steps, "updates": made, "seconds": round(seconds, 1),
            "steps_per_second": round(steps / seconds, 1),
            "intensity": round(made * recipe["replay"]["batch_size"] / steps, 2)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
