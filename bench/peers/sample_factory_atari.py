#!/usr/bin/env python3
"""Sample Factory's APPO on an Atari game with its own settings for Atari: agent steps a second with learning.

    sample_factory_atari.py [--game Pong] [--seconds 40]

2 workers x 4 environments, synchronous, on the CPU: 8 x 128 steps, minibatches of 256, 4 epochs, Nature's network. Its own count of
frames (4 a step) is read from its log: the best of its averages over 60 seconds or, in shorter runs, 10. One line, "RESULT " and a
JSON object.
"""

import argparse
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

FRAMES_A_STEP = 4


def make(full_env_name, cfg=None, env_config=None, render_mode=None):  # By name, for its workers' sake.
    import ale_py  # noqa: F401, registers the games
    from sf_examples.atari.atari_utils import make_atari_env

    return make_atari_env(full_env_name, cfg, env_config, render_mode)


def train(game):
    from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
    from sample_factory.envs.env_utils import register_env
    from sample_factory.train import run_rl
    from sf_examples.atari.atari_params import atari_override_defaults

    name = f"atari_{game.lower()}"
    register_env(name, make)
    arguments = ["--algo=APPO", f"--env={name}", "--experiment=speed", "--device=cpu", "--train_for_env_steps=1000000000",
                 "--num_workers=2", "--train_dir=.", "--save_every_sec=100000", "--async_rl=False"]  # fmt: skip
    parser, _ = parse_sf_args(arguments)
    atari_override_defaults(name, parser)
    sys.exit(run_rl(parse_full_cfg(parser, arguments)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Pong")
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--train", action="store_true", help="only trains, until it is interrupted")
    options = parser.parse_args()
    if options.train:
        train(options.game)
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--train", "--game", options.game], cwd=folder,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)  # fmt: skip
        try:
            output, _ = child.communicate(timeout=options.seconds + 15)  # It starts in about 15 s.
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # Asked kindly it may take minutes.
            output, _ = child.communicate()
    rates = re.findall(r"Fps is \(10 sec: ([\d.]+|nan), 60 sec: ([\d.]+|nan)", output)
    long = [float(rate) for _, rate in rates if rate != "nan"]
    short = [float(rate) for rate, _ in rates if rate != "nan"]
    if not short:
        sys.exit("Sample Factory told no speed: " + output[-500:])
    frames = max(long) if options.seconds >= 75 and long else max(short)
    line = {"peer": "sample factory", "version": importlib.metadata.version("sample-factory"), "game": options.game, "how": "APPO, 2 workers",
            "steps_per_second": round(frames / FRAMES_A_STEP)}  # fmt: skip
    print("RESULT", json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
