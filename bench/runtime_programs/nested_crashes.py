#!/usr/bin/env python3
"""Trees of nested tasks whose workers crash: 20 searches of a game, four levels of two replies, and four places kill who looks at them.

    bench/runtime_programs/nested_crashes.py [--package menger.runtime]

The graph is known only while it runs: a task decides what it calls, and waits for it. What is cut short is run again.
"""

import os
import pathlib
import signal
import tempfile

import program

LEVELS = 4
GAMES = 20
CRASHES = {2: 1, 7: 6, 11: 13, 16: 3}  # The leaf by the game.


def value_of(game, place):
    return (place * 2654435761 + game * 40503) % 1009


def best(game, level, place):
    """The value for who is to move, as one process finds it."""
    if level == 0:
        return value_of(game, place)
    return max(-best(game, level - 1, 2 * place + reply) for reply in range(2))


def searching(ray, crashes):
    @ray.remote(max_retries=3)
    def search(game, level, place, marks):
        if level == 0:
            if crashes.get(game) == place:
                try:
                    pathlib.Path(marks, str(game)).touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:  # It has crashed here before.
                    pass
            return value_of(game, place)
        return max(-value for value in ray.get([search.remote(game, level - 1, 2 * place + reply, marks) for reply in range(2)]))

    return search


def run(ray):
    with tempfile.TemporaryDirectory() as marks:
        quiet = searching(ray, {})
        ray.get([quiet.remote(game, LEVELS, 0, marks) for game in range(2)])
        search = searching(ray, CRASHES)
        begin = program.clock()
        values = [ray.get(search.remote(game, LEVELS, 0, marks)) for game in range(GAMES)]
        seconds = program.clock() - begin
        assert values == [best(game, LEVELS, 0) for game in range(GAMES)]
        assert sorted(os.listdir(marks), key=int) == [str(game) for game in CRASHES]
    return {"seconds": seconds}


if __name__ == "__main__":
    program.main(run, __doc__)
