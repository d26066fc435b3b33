#!/usr/bin/env python3
"""RLlib's DQN (its new interfaces): environment steps a second, learning included.

    rllib_dqn.py cartpole|lunarlander|pong [--seconds 40] [--threads 2]

One environment in the process that learns, its default for DQN, uniform replay, neither double nor duelling, and the settings of
dqn_tasks.py. The clock starts after the first iteration that learned. One line, "RESULT " and a JSON object.
"""

import time

import dqn_tasks
import gymnasium
import ray
import torch
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.atari_wrappers import wrap_atari_for_new_api_stack
from ray.tune.registry import register_env


def make_pong(_):
    import ale_py

    gymnasium.register_envs(ale_py)
    game = gymnasium.make("ALE/Pong-v5", frameskip=1, full_action_space=False, repeat_action_probability=0.0)
    return wrap_atari_for_new_api_stack(game, dim=84, framestack=4)


def configured(task):
    if task.pixels:
        network = DefaultModelConfig(conv_filters=[[32, 8, 4], [64, 4, 2], [64, 3, 1]], conv_activation="relu",
                                     head_fcnet_hiddens=[512], head_fcnet_activation="relu")  # fmt: skip
    else:
        network = DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="relu")
    return (
        DQNConfig()
        .environment("pong" if task.pixels else task.environment, clip_rewards=task.pixels)
        .rl_module(model_config=network)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1, rollout_fragment_length=task.train_every)
        .training(train_batch_size_per_learner=task.batch_size, lr=task.learning_rate, double_q=False, dueling=False, n_step=1,
                  epsilon=task.epsilon, target_network_update_freq=task.target_every,
                  num_steps_sampled_before_learning_starts=task.start,
                  replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": task.capacity})
        .reporting(min_sample_timesteps_per_iteration=1, min_time_s_per_iteration=1)
    )  # fmt: skip


def counts(result):
    """Steps sampled, and rows learned from, since the start."""
    learned = result.get("learners", {}).get("__all_modules__", {}).get("num_env_steps_trained_lifetime", 0)
    return result["env_runners"]["num_env_steps_sampled_lifetime"], learned


def main():
    options = dqn_tasks.options(__doc__)
    task = dqn_tasks.TASKS[options.task]
    ray.init(num_cpus=6, include_dashboard=False, log_to_driver=False)
    register_env("pong", make_pong)
    algorithm = configured(task).build_algo()
    torch.set_num_threads(options.threads)
    steps, rows = counts(algorithm.train())
    while rows == 0:
        steps, rows = counts(algorithm.train())
    start = time.perf_counter()
    while time.perf_counter() - start < options.seconds:
        steps_end, rows_end = counts(algorithm.train())
    seconds = time.perf_counter() - start
    dqn_tasks.report("rllib", ray.__version__, options, int(steps_end - steps), (rows_end - rows) / task.batch_size, seconds)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
