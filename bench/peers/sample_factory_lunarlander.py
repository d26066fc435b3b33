#!/usr/bin/env python3
"""Sample Factory on LunarLander: environment steps a second of its sampler alone, or of its APPO.

    sample_factory_lunarlander.py sampling|training RECIPE [--seconds 40] [--workers 2]

The network's layers and the number of environments, which the workers share, are those of the recipe, a .toml file; the rest is Sample
Factory's default: asynchronous, workers with two groups of environments in turn, inference in a process of its own, rollouts of 32; the
learner, where there is one, uses each step once, in batches of 1024. It needs a Gymnasium from before LunarLander-v3, so that is
LunarLander-v2, whose physics are the same without wind. The clock starts after two seconds of trajectories, or the second batch learned.
One line, "RESULT " and a JSON object.
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import tempfile
import time
import tomllib

from sample_factory.algo.runners.runner import AlgoObserver
from sample_factory.algo.sampling.simplified_sampling_api import SyncSamplingAPI
from sample_factory.algo.utils.env_info import obtain_env_info_in_a_separate_process
from sample_factory.algo.utils.rl_utils import samples_per_trajectory
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import make_runner

ENVIRONMENT = "LunarLander-v2"


def make(full_env_name, cfg=None, env_config=None, render_mode=None):  # By name, for its workers' sake.
    import gymnasium

    return gymnasium.make(full_env_name, render_mode=render_mode)


def configured(recipe, workers, folder):
    arguments = ["--algo=APPO", f"--env={ENVIRONMENT}", "--experiment=speed", "--device=cpu", "--train_for_env_steps=1000000000",
                 f"--num_workers={workers}", f"--num_envs_per_worker={recipe['collector']['environments'] // workers}",
                 "--use_rnn=False", "--normalize_input=False", f"--nonlinearity={recipe['network']['activation']}",
                 "--encoder_mlp_layers", *map(str, recipe["network"]["hidden"]), "--save_every_sec=100000",
                 f"--train_dir={folder}"]  # fmt: skip
    parser, _ = parse_sf_args(arguments)
    return parse_full_cfg(parser, arguments)


class Clock(AlgoObserver):
    """Tells the speed, once it has run for so long, and ends the program: asked kindly, Sample Factory may take minutes."""

    def __init__(self, options, folder):
        self.options, self.folder, self.start = options, folder, None

    def on_training_step(self, runner, training_iteration_since_resume):
        self.at(runner.total_env_steps_since_resume or 0)

    def at(self, steps):
        now = time.perf_counter()
        if self.start is None:
            if steps > 0:
                self.start = now, steps
            return
        seconds = now - self.start[0]
        if seconds < self.options.seconds:
            return
        counted = steps - self.start[1]
        line = {"peer": "sample factory", "version": importlib.metadata.version("sample-factory"), "environment": ENVIRONMENT,
                "what": self.options.what, "workers": self.options.workers, "steps": counted, "seconds": round(seconds, 1),
                "steps_per_second": round(counted / seconds)}  # fmt: skip
        print("RESULT", json.dumps(line), flush=True)
        for process in multiprocessing.active_children():
            process.kill()
        self.folder.cleanup()
        os._exit(0)


def sample(cfg, clock):
    sampler = SyncSamplingAPI(cfg, obtain_env_info_in_a_separate_process(cfg))
    sampler.start()
    steps, first = 0, None
    while True:
        steps += samples_per_trajectory(sampler.get_trajectories_sync())
        first = first or time.perf_counter()
        if time.perf_counter() - first > 2:
            clock.at(steps)


def train(cfg, clock):
    _, runner = make_runner(cfg)
    runner.register_observer(clock)
    runner.init()
    runner.run()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sampling", "training"])
    parser.add_argument("recipe")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with open(options.recipe, "rb") as file:
        recipe = tomllib.load(file)
    register_env(ENVIRONMENT, make)
    folder = tempfile.TemporaryDirectory()
    {"sampling": sample, "training": train}[options.what](configured(recipe, options.workers, folder.name), Clock(options, folder))


if __name__ == "__main__":
    main()
