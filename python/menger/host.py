"""python -m menger.host --control N: serves the environments of one block of columns; see protocol.h.

`menger` starts it. Everything that it needs to know comes through the control segment.
"""

import argparse
import gc
import json
import os
import signal
import sys
import traceback

from menger import control
from menger.control import INVALID_ARGUMENT, Control, Failure
from menger.packages import missing_message, missing_of

_TURN_SECONDS = 3600.0


def describe(request):
    """The spec of what the request names, as menger reads it (spec_json.h)."""
    check_packages(request)
    from menger.blocks import close_told, leaves_of, left_out_of
    from menger.making import Maker

    maker = Maker(request)
    environment = maker.make_vector(1) if maker.vector else maker.make()
    observation, action = leaves_of(environment, maker.vector)
    spec = maker.spec() or getattr(environment, "spec", None)
    close_told(environment)
    left_out = left_out_of(environment, maker.vector)
    threshold = getattr(spec, "reward_threshold", None)
    return {
        "name": maker.name,
        "observation": [leaf.describe() for leaf in observation],
        "action": [action.describe()],
        "max_episode_steps": getattr(spec, "max_episode_steps", None) or 0,
        "reward_threshold": "nan" if threshold is None else threshold,
        "description": "a Python environment, in processes of its own",
        "resumable": False,
        "notices": [f"{maker.name}: its '{name}' is Text and is left out" for name in left_out],
    }


def check_packages(request):
    """All that is missing at once, before anything is imported."""
    missing = missing_of(request["environment"], request.get("path", ()))
    if missing:
        raise Failure(missing_message(request["environment"], missing))


def attach(end, attachment):
    from menger.blocks import Block, VectorBlock
    from menger.making import Maker

    maker = Maker(attachment["request"])
    block = (VectorBlock if maker.vector else Block)(maker, end, attachment)
    gc.collect()
    gc.freeze()  # What is there now stays: the collector need not look at it again.
    return block


def answer(end, block, command, row):
    """Does one request other than a step; returns the block."""
    if command == control.DESCRIBE:
        end.say(json.dumps(describe(json.loads(end.text()))))
    elif command == control.CHECK:
        check_packages(json.loads(end.text()))  # The module below needs some itself.
        from menger.check import check

        end.say(json.dumps(check(json.loads(end.text()), end.doing)))
    elif command == control.ATTACH:
        return attach(end, json.loads(end.text()))
    elif block is None:
        raise Failure("the host has not been attached to a slab")
    elif command == control.RESET:
        block.reset(row)
    elif command == control.RESET_PARKED:
        block.reset_parked(row)
    elif command == control.STEP_RANDOMLY:
        block.step_randomly(row, json.loads(end.text())["steps"], end.seed())
    elif command == control.RENDER:
        end.say(block.render(row))
    elif command == control.REFUSE:
        refused = json.loads(end.text())
        block.refuse(row, refused["column"], refused["why"], refused["begins"])
    else:
        raise Failure(f"this host cannot do command {command}", INVALID_ARGUMENT)
    return block


def close(block):
    try:
        if block is not None:
            block.close()
    except BaseException:  # It ends now, whatever the environments say to that.
        traceback.print_exc()


def serve(end):
    block, turn = None, end.turn
    request = end.wait()
    while True:
        try:
            while True:
                command, row = request & 255, request >> 8
                if command == control.STEP:
                    block.step(row)
                elif command == control.CLOSE:
                    close(block)
                    turn(0.0)
                    return
                else:
                    block = answer(end, block, command, row)
                if block is not None and block.any_news:
                    end.say(json.dumps(block.tell()))
                request = turn(_TURN_SECONDS) or end.wait()
        except Failure as failure:
            end.fail(failure.code, str(failure))
        except BaseException:  # Of this package, or while a user's module was imported.
            end.fail(control.FAILED_PRECONDITION, traceback.format_exc().rstrip())
        request = end.wait()


def ignore_signals():
    """A batch system that ends a job may signal every process of it; menger saves, then closes its hosts.

    Handlers that do nothing rather than SIG_IGN, which the processes that environments start would inherit: to end those with
    SIGTERM, as multiprocessing does, must go on working.
    """
    kept = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    for number in kept:
        signal.signal(number, lambda *_: None)
        signal.siginterrupt(number, False)

    def restore():
        for number in kept:
            signal.signal(number, signal.SIG_DFL)

    os.register_at_fork(after_in_child=restore)


def start_supervised():
    """Goes on in a child: this process itself waits, and ends whatever the environments have started with the host.

    Before anything large is imported, so that waiting costs next to no memory.
    """
    host = os.fork()
    if host != 0:
        control.supervise(host)


def main():
    parser = argparse.ArgumentParser(prog="python -m menger.host", description=__doc__)
    parser.add_argument("--control", type=int, required=True, help="the inherited descriptor of the control segment")
    options = parser.parse_args()
    start_supervised()
    ignore_signals()
    try:
        serve(Control(options.control))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
