#!/usr/bin/env python3
"""RLlib's PPO (its new interfaces) on an Atari game: agent steps a second with learning.

    rllib_atari.py [--game Pong] [--seconds 40] [--runners 2]

8 environments x 128 steps over the runners, minibatches of 256, 4 epochs, Nature's network, 84 x 84 x 4. The clock starts after the
first iteration. One line, "RESULT " and a JSON object.
"""

import argparse
import json
import time

import ale_py
import gymnasium
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.atari_wrappers import wrap_atari_for_new_api_stack
from ray.tune.registry import register_env


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--runners", type=int, default=2)
    options = parser.parse_args()

    def make(_):
        gymnasium.register_envs(ale_py)
        game = gymnasium.make(f"ALE/{options.game}-v5", frameskip=1, full_action_space=False, repeat_action_probability=0.0)
        return wrap_atari_for_new_api_stack(game, dim=84, framestack=4)

    ray.init(num_cpus=6, include_dashboard=False, log_to_driver=False)
    register_env("game", make)
    config = (
        PPOConfig()
        .environment("game", clip_rewards=True)
        .rl_module(model_config=DefaultModelConfig(
            conv_filters=[[32, 8, 4], [64, 4, 2], [64, 3, 1]], conv_activation="relu", head_fcnet_hiddens=[512],
            head_fcnet_activation="relu", vf_share_layers=True))
        .env_runners(num_env_runners=options.runners, num_envs_per_env_runner=8 // options.runners, rollout_fragment_length=128)
        .training(train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=4, lr=2.5e-4, lambda_=0.95, clip_param=0.1,
                  entropy_coeff=0.01, vf_loss_coeff=0.5, grad_clip=0.5)
    )  # fmt: skip
    algorithm = config.build_algo()

    def sampled():
        return algorithm.train()["env_runners"]["num_env_steps_sampled_lifetime"]

    before, start = sampled(), time.perf_counter()
    while time.perf_counter() - start < options.seconds:
        after = sampled()
    seconds, steps = time.perf_counter() - start, int(after - before)
    line = {"peer": "rllib", "version": ray.__version__, "game": options.game, "how": f"{options.runners} runners", "steps": steps,
            "seconds": round(seconds, 1), "steps_per_second": round(steps / seconds)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
