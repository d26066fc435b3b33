#!/usr/bin/env python3
"""RLlib's SAC (its new interfaces; it has no TD3): environment steps a second, learning included.

    rllib_continuous.py sac halfcheetah|pendulum [--seconds 40] [--threads 2]

One environment in the process that learns, its default for SAC, uniform replay, and the settings of continuous_tasks.py; critics read
observation and action side by side, as everybody else's. The clock starts after the first iteration that learned. One line, "RESULT "
and a JSON object.
"""

import time

import continuous_tasks
import ray
import torch
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.algorithms.sac.sac_catalog import SACCatalog
from ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module import DefaultSACTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from torch import nn


class CriticLayers(nn.Module):
    """All but the last layer of a critic. RLlib's own reads observation and action by networks of their own, and joins them."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())

    def forward(self, batch):
        return {ENCODER_OUT: self.layers(torch.cat((batch[Columns.OBS], batch[Columns.ACTIONS]), -1))}


class Catalog(SACCatalog):
    def build_qf_encoder(self, framework):
        return CriticLayers(self.observation_space.shape[0] + self.action_space.shape[0], self.latent_dims[0])


def configured(task):
    network = DefaultModelConfig(fcnet_hiddens=[task.hidden, task.hidden], fcnet_activation="relu", head_fcnet_hiddens=[])
    rate = continuous_tasks.LEARNING_RATE
    return (
        SACConfig()
        .environment(task.environment)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=DefaultSACTorchRLModule, catalog_class=Catalog, model_config=network))
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1, rollout_fragment_length=1)
        .training(train_batch_size_per_learner=continuous_tasks.BATCH_SIZE, actor_lr=rate, critic_lr=rate, alpha_lr=rate,
                  gamma=continuous_tasks.DISCOUNT, tau=continuous_tasks.TARGET_RATE, twin_q=True, n_step=1, target_entropy="auto",
                  num_steps_sampled_before_learning_starts=task.start,
                  replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": task.capacity})
        .reporting(min_sample_timesteps_per_iteration=1, min_time_s_per_iteration=1)
    )  # fmt: skip


def counts(result):
    """Steps sampled, and rows learned from, since the start."""
    learned = result.get("learners", {}).get("__all_modules__", {}).get("num_env_steps_trained_lifetime", 0)
    return result["env_runners"]["num_env_steps_sampled_lifetime"], learned


def main():
    options = continuous_tasks.options(__doc__, ["sac"])
    ray.init(num_cpus=6, include_dashboard=False, log_to_driver=False)
    algorithm = configured(continuous_tasks.TASKS[options.task]).build_algo()
    torch.set_num_threads(options.threads)
    steps, rows = counts(algorithm.train())
    while rows < continuous_tasks.UPDATES_BEFORE * continuous_tasks.BATCH_SIZE:
        steps, rows = counts(algorithm.train())
    start = time.perf_counter()
    while time.perf_counter() - start < options.seconds:
        steps_end, rows_end = counts(algorithm.train())
    seconds = time.perf_counter() - start
    updates = (rows_end - rows) / continuous_tasks.BATCH_SIZE
    continuous_tasks.report("rllib", ray.__version__, options, int(steps_end - steps), updates, seconds)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
