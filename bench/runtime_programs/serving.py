#!/usr/bin/env python3
"""Serving: 64 clients on one loop ask a model 4,000 times; an actor of coroutines gathers what it is asked into batches.

    bench/runtime_programs/serving.py [--package menger.runtime]

Each client sends its next request when it has the answer. A batch is whatever has come in the meantime, 32 at most: two layers of 128.
"""

import asyncio

import numpy as np
import program

CLIENTS = 64
REQUESTS = 4000
WIDTH = 128


class Model:
    def __init__(self):
        random = np.random.default_rng(0)
        self.layers = [random.integers(-2, 3, (WIDTH, WIDTH)).astype(np.float32) for _ in range(2)]

    def infer(self, batch):
        """Whole numbers that float32 has, so that the size of a batch changes nothing."""
        return np.maximum(batch @ self.layers[0], 0) @ self.layers[1]


class Server:
    def __init__(self, model, batch_max):
        self.model, self.batch_max = model, batch_max
        self.waiting, self.runner = [], None

    async def ask(self, observation):
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append((observation, answer))
        if self.runner is None:
            self.runner = asyncio.create_task(self.run())
        return await answer

    async def run(self):
        while self.waiting:
            await asyncio.sleep(0)  # Who is on the way comes in.
            batch, self.waiting = self.waiting[: self.batch_max], self.waiting[self.batch_max :]
            for (_, answer), row in zip(batch, self.model.infer(np.stack([each for each, _ in batch])), strict=True):
                answer.set_result(row)
        self.runner = None


def observation(client, request):
    return np.full(WIDTH, (client * 7 + request) % 16, np.float32)


async def ask(server, client, requests):
    return [await server.ask.remote(observation(client, request)) for request in range(requests)]


async def ask_all(server, requests):
    return await asyncio.gather(*[ask(server, client, requests // CLIENTS) for client in range(CLIENTS)])


def run(ray):
    server = ray.remote(num_cpus=1)(Server).remote(Model(), 32)
    asyncio.run(ask_all(server, 5 * CLIENTS))
    begin = program.clock()
    answers = asyncio.run(ask_all(server, REQUESTS))
    seconds = program.clock() - begin
    model = Model()
    for client, rows in enumerate(answers):
        inputs = np.stack([observation(client, request) for request in range(len(rows))])
        assert np.array_equal(np.stack(rows), model.infer(inputs))
    return {"seconds": seconds}


if __name__ == "__main__":
    program.main(run, __doc__)
