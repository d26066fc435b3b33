"""Records what torch's autograd makes of updates of SAC and TD3, for the tests of src/menger/algorithms.

Run with an interpreter that has torch and NumPy:
    python tools/record_pathwise.py     rewrites src/menger/algorithms/pathwise_test_values.h

Written from the papers, in float64 where nothing is fixed by the noise: Haarnoja et al. 2018 ("Soft Actor-Critic Algorithms and
Applications") and Fujimoto et al. 2018. Batches and parameters are not recorded: both sides compute them with the same short formula
(`numbers`). Noise is that of menger::CounterRandom, computed here once more from Salmon et al. 2011 and Box and Muller 1958.
"""

import math
import os

import torch

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "menger", "algorithms", "pathwise_test_values.h")
ROWS, OBSERVATION, ACTION, HIDDEN, CRITICS, UPDATES = 6, 3, 2, (5, 4), 2, 3
DISCOUNT, RATE, TARGET_RATE = 0.9, 1e-2, 0.25
SEED, NOISE_STREAM, NOISE_USES = 5, 4, 4
MASK = 2**32 - 1
torch.set_default_dtype(torch.float64)


def numbers(count, salt, scale):
    index = torch.arange(count, dtype=torch.int64) + salt * 1000003
    word = (index * 2654435761) % 2**32
    return ((word >> 8).to(torch.float64) / 2**23 - 1.0) * scale


def philox(counter, key):
    counter, key = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & MASK, (first >> 32) ^ counter[3] ^ key[1], first & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def normals(first, second):
    radius = math.sqrt(-2 * math.log(((first >> 8) + 1) * 2.0**-24))
    angle = 2 * math.pi * (second >> 8) * 2.0**-24
    return radius * math.cos(angle), radius * math.sin(angle)


def noise(update, use):
    key = philox((NOISE_STREAM, 0, 0, 0), (SEED & MASK, SEED >> 32))[:2]
    step, values = update * NOISE_USES + use, []
    for block in range(0, ROWS * ACTION, 4):
        words = philox((0, block // 4, step & MASK, step >> 32), key)
        values += [*normals(words[0], words[1]), *normals(words[2], words[3])]
    return torch.tensor(values[: ROWS * ACTION]).reshape(ROWS, ACTION)


class Perceptrons:
    """Heads with layers of their own over one flat vector, in the order of our manifest."""

    def __init__(self, inputs, heads, salt):
        self.shapes = []
        for width in heads:
            sizes = (inputs, *HIDDEN, width)
            for here, there in zip(sizes, sizes[1:]):
                self.shapes += [(here, there), (there,)]
        self.layers = len(HIDDEN) + 1
        self.flat = numbers(sum(math.prod(shape) for shape in self.shapes), salt, 0.5).requires_grad_()

    def __call__(self, x, flat=None):
        parts, at = [], 0
        for shape in self.shapes:
            parts.append((self.flat if flat is None else flat)[at : at + math.prod(shape)].reshape(shape))
            at += math.prod(shape)
        outputs = []
        for head in range(0, len(parts), 2 * self.layers):
            y = x
            for layer in range(self.layers):
                y = y @ parts[head + 2 * layer] + parts[head + 2 * layer + 1]
                y = torch.relu(y) if layer < self.layers - 1 else y
            outputs.append(y)
        return outputs


def batch(update):
    salt = 10 + 10 * update
    return {"observation": numbers(ROWS * OBSERVATION, salt, 1.0).reshape(ROWS, OBSERVATION),
            "next": numbers(ROWS * OBSERVATION, salt + 1, 1.0).reshape(ROWS, OBSERVATION),
            "action": numbers(ROWS * ACTION, salt + 2, 0.9).reshape(ROWS, ACTION),
            "reward": numbers(ROWS, salt + 3, 2.0),
            "bootstrap": DISCOUNT * torch.tensor([0.0 if row % 3 == 0 else 1.0 for row in range(ROWS)])}  # fmt: skip


def adam(values):
    return torch.optim.Adam([values], lr=RATE, eps=1e-8)


def step(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def critic_loss(critics, given, targets):
    outputs = critics(torch.cat([given["observation"], given["action"]], 1))
    return sum(0.5 * ((output[:, 0] - targets) ** 2).mean() for output in outputs)


def smallest(critics, observations, actions, flat=None):
    return torch.stack(critics(torch.cat([observations, actions], 1), flat))[:, :, 0].min(0).values


def squashed(output, drawn):
    mean, log_std = output[:, :ACTION], output[:, ACTION:].clamp(-20, 2)
    normal = torch.distributions.Normal(mean, log_std.exp())
    before = mean + log_std.exp() * drawn
    action = torch.tanh(before)
    return action, (normal.log_prob(before) - torch.log(1 - action**2)).sum(1)


def sac():
    actor, critics = Perceptrons(OBSERVATION, [2 * ACTION], 1), Perceptrons(OBSERVATION + ACTION, [1] * CRITICS, 2)
    target = critics.flat.detach().clone()
    log_temperature = torch.tensor([math.log(0.2)], requires_grad=True)
    of_actor, of_critics, of_temperature = adam(actor.flat), adam(critics.flat), adam(log_temperature)
    losses = []
    for update in range(UPDATES):
        given, temperature = batch(update), log_temperature.exp().item()
        with torch.no_grad():
            action, log_probability = squashed(actor(given["next"])[0], noise(update, 0))
            soft = smallest(critics, given["next"], action, target) - temperature * log_probability
            targets = given["reward"] + given["bootstrap"] * soft
        loss = critic_loss(critics, given, targets)
        losses.append(loss.item())
        step(of_critics, loss)
        action, log_probability = squashed(actor(given["observation"])[0], noise(update, 1))
        step(of_actor, (temperature * log_probability - smallest(critics, given["observation"], action)).mean())
        entropy = -log_probability.detach().mean()
        step(of_temperature, (log_temperature * (entropy + ACTION)).sum())
        target += TARGET_RATE * (critics.flat.detach() - target)
    return actor.flat, critics.flat, target, log_temperature, losses


def td3():
    actor, critics = Perceptrons(OBSERVATION, [ACTION], 1), Perceptrons(OBSERVATION + ACTION, [1] * CRITICS, 2)
    target, target_actor = critics.flat.detach().clone(), actor.flat.detach().clone()
    of_actor, of_critics, losses = adam(actor.flat), adam(critics.flat), []
    for update in range(UPDATES):
        given = batch(update)
        with torch.no_grad():
            smoothing = (0.2 * noise(update, 0)).clamp(-0.25, 0.25)
            action = (torch.tanh(actor(given["next"], target_actor)[0]) + smoothing).clamp(-1, 1)
            targets = given["reward"] + given["bootstrap"] * smallest(critics, given["next"], action, target)
        loss = critic_loss(critics, given, targets)
        losses.append(loss.item())
        step(of_critics, loss)
        if (update + 1) % 2 == 0:
            action = torch.tanh(actor(given["observation"])[0])
            step(of_actor, -critics(torch.cat([given["observation"], action], 1))[0].mean())
            target += TARGET_RATE * (critics.flat.detach() - target)
            target_actor += TARGET_RATE * (actor.flat.detach() - target_actor)
    return actor.flat, critics.flat, target, target_actor, losses


def array(name, values):
    values = torch.as_tensor(values).detach().flatten().tolist()
    return f"inline constexpr float {name}[] = {{{', '.join(f'{value:.9g}' for value in values)}}};"


def main():
    lines = ["#pragma once", "", f"// Written by tools/record_pathwise.py with torch {torch.__version__}; not for editing.", "",
             "namespace menger::recorded {", ""]  # fmt: skip
    for name, recorded in (("Sac", sac()), ("Td3", td3())):
        kinds = ("Actor", "Critics", "Target", "Temperature" if name == "Sac" else "TargetActor", "Losses")
        lines += [array(f"k{name}{kind}", values) for kind, values in zip(kinds, recorded)]
    lines += ["", "}  // namespace menger::recorded", ""]
    with open(TARGET, "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
