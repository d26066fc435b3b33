"""Records an update of PPO that autograd made of the paper's loss, for src/menger/algorithms/ppo_test.cc.

Run with an interpreter that has torch and numpy (bench/peers/setup.sh sb3):
    .peers/sb3/bin/python tools/record_ppo.py     rewrites src/menger/algorithms/ppo_test_values.h

Written from Schulman et al. 2017 (eq. 7 and section 5) and Huang et al. 2022: nothing of it is taken from Menger but the
layout of parameters, the order of random numbers (NumPy's) and the rule by which rows are divided into minibatches. In double
precision, so that it says what is right and not what another rounding gives.
"""

import os

import numpy as np
import torch

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "menger", "algorithms", "ppo_test_values.h")
STEPS, COLUMNS, SIZE, ACTIONS, HIDDEN = 5, 3, 3, 3, [6, 5]
DISCOUNT, LAMBDA, CLIP, VALUE_CLIP, VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 0.9, 0.8, 0.1, 0.15, 0.7, 0.02
RATE, EPSILON, NORM_MAX, EPOCHS, MINIBATCH, SEED = 6e-3, 1e-5, 0.5, 4, 4, 11
INVALID, TERMINATED, TRUNCATED = {(2, 1)}, {(1, 0), (3, 2)}, {(3, 1)}
TARGET_KL = 0.0044  # Exceeded half again in the third pass.


def numbers(count, salt, scale):
    """As recorded_input.h, rounded to the float32 that the program is given."""
    words = ((np.arange(count, dtype=np.uint64) + np.uint64(salt * 1000003)) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    return (((words >> np.uint64(8)).astype(np.float32) / np.float32(8388608.0) - np.float32(1.0)) * np.float32(scale)).astype(float)


def parameters():
    """One tensor a layer, weights as [inputs, outputs]: the policy's, then the value's."""
    shapes = []
    for outputs in (ACTIONS, 1):
        sizes = [SIZE, *HIDDEN, outputs]
        for inputs, width in zip(sizes, sizes[1:]):
            shapes += [(inputs, width), (width,)]
    flat = torch.tensor(numbers(sum(int(np.prod(shape)) for shape in shapes), 1, 0.5))
    tensors, at = [], 0
    for shape in shapes:
        count = int(np.prod(shape))
        tensors.append(flat[at : at + count].reshape(shape).clone().requires_grad_())
        at += count
    return tensors


def run(layers, x):
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1]
        if i + 2 < len(layers):
            x = torch.tanh(x)
    return x


def policy_and_value(tensors, x):
    half = len(tensors) // 2
    return torch.log_softmax(run(tensors[:half], x), -1), run(tensors[half:], x)[..., 0]


def advantages(tensors, values, rewards, final):
    """Generalised: delta = r + discount V' - V, one row after the other from the last."""
    observations = torch.tensor(numbers((STEPS + 1) * COLUMNS * SIZE, 2, 1)).reshape(STEPS + 1, COLUMNS, SIZE)
    with torch.no_grad():
        after = policy_and_value(tensors, observations[STEPS])[1]
        last = policy_and_value(tensors, final)[1]
    result = torch.zeros(STEPS, COLUMNS, dtype=torch.float64)
    for column in range(COLUMNS):
        following = 0.0
        for row in reversed(range(STEPS)):
            if (row, column) in INVALID:
                following = 0.0
                continue
            following_value = values[row + 1, column] if row + 1 < STEPS else after[column]
            if (row, column) in TERMINATED:
                following_value, following = 0.0, 0.0
            elif (row, column) in TRUNCATED:
                following_value, following = last[column], 0.0
            delta = rewards[row, column] + DISCOUNT * following_value - values[row, column]
            following = delta + DISCOUNT * LAMBDA * following
            result[row, column] = following
    return observations[:STEPS], result


def main():
    tensors = parameters()
    rewards = torch.tensor(numbers(STEPS * COLUMNS, 3, 1)).reshape(STEPS, COLUMNS)
    values = torch.tensor(numbers(STEPS * COLUMNS, 4, 0.5)).reshape(STEPS, COLUMNS)
    final = torch.tensor(numbers(COLUMNS * SIZE, 5, 1)).reshape(COLUMNS, SIZE)
    observations, advantage = advantages(tensors, values, rewards, final)
    actions = torch.tensor([(3 * i + i // 4) % ACTIONS for i in range(STEPS * COLUMNS)])
    observations, advantage, values = observations.reshape(-1, SIZE), advantage.flatten(), values.flatten()
    returns = advantage + values
    with torch.no_grad():
        now = policy_and_value(tensors, observations)[0]
    # The policy that acted was a little another one.
    shift = torch.tensor(numbers(STEPS * COLUMNS, 6, 0.12))
    old = (now[range(len(actions)), actions] + shift).float().double()

    optimiser = torch.optim.Adam(tensors, lr=RATE, eps=EPSILON)
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(SEED, spawn_key=(2,))))
    valid = [row * COLUMNS + column for row in range(STEPS) for column in range(COLUMNS) if (row, column) not in INVALID]
    count = -(-len(valid) // MINIBATCH)
    gradients, norms, kls, stopped = [], [], [], False
    for _ in range(EPOCHS):
        order = np.array(valid, dtype=np.int32)
        random.shuffle(order)
        for index in range(count):
            rows = order[len(order) * index // count : len(order) * (index + 1) // count].tolist()
            probabilities, value = policy_and_value(tensors, observations[rows])
            log_ratio = probabilities[range(len(rows)), actions[rows]] - old[rows]
            ratio = log_ratio.exp()
            weight = advantage[rows]
            weight = (weight - weight.mean()) / (weight.std() + 1e-8)
            policy_loss = -torch.min(ratio * weight, ratio.clamp(1 - CLIP, 1 + CLIP) * weight).mean()
            clipped = values[rows] + (value - values[rows]).clamp(-VALUE_CLIP, VALUE_CLIP)
            value_loss = 0.5 * torch.max((value - returns[rows]) ** 2, (clipped - returns[rows]) ** 2).mean()
            entropy = -(probabilities.exp() * probabilities).sum(-1).mean()
            kls.append(float(((ratio - 1) - log_ratio).detach().mean()))
            if kls[-1] > 1.5 * TARGET_KL:
                stopped = True
                break
            optimiser.zero_grad()
            (policy_loss + VALUE_COEFFICIENT * value_loss - ENTROPY_COEFFICIENT * entropy).backward()
            gradients.append(torch.cat([tensor.grad.flatten() for tensor in tensors]).numpy().copy())
            norms.append(float(torch.nn.utils.clip_grad_norm_(tensors, NORM_MAX)))
            optimiser.step()
        if stopped:
            break
    print("kl:", [f"{kl:.4f}" for kl in kls], "norms:", [f"{norm:.3f}" for norm in norms])
    assert stopped and 2 * count < len(norms) < 3 * count and min(norms) < NORM_MAX < max(norms)

    flat = torch.cat([tensor.detach().flatten() for tensor in tensors]).numpy()
    lines = ["#pragma once", "", f"// Written by tools/record_ppo.py with torch {torch.__version__}; not for editing.", "",
             "namespace menger::recorded {", "", f"inline constexpr double kPpoTargetKl = {TARGET_KL};"]  # fmt: skip
    for name, array in (("OldLogProbabilities", old), ("Gradients", np.concatenate(gradients)), ("Norms", norms), ("Parameters", flat)):
        body = ", ".join(f"{value:.9g}" for value in np.asarray(array).flatten())
        lines.append(f"inline constexpr double kPpo{name}[] = {{{body}}};")
    lines += ["", "}  // namespace menger::recorded", ""]
    with open(TARGET, "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
