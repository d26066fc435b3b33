"""Records what torch computes, for the tests of src/menger/networks.

Run with an interpreter that has torch:
    python tools/record_networks.py     rewrites network_test_values.h and layer_norm_test_values.h there

Inputs are not recorded: both sides compute them with the same short formula (`numbers` here, RecordedInput there).
"""

import os

import torch

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "menger", "networks")


def numbers(count, salt, scale):
    """Numbers in [-scale, scale) that look random and are exact in float32 times a power of two."""
    index = torch.arange(count, dtype=torch.int64) + salt * 1000003
    word = (index * 2654435761) % 2**32
    return ((word >> 8).to(torch.float32) / 2**23 - 1.0) * scale


def array(name, values):
    values = torch.as_tensor(values).detach().tolist()
    body = ", ".join(f"{value:.9g}" for value in values)
    return f"inline constexpr float {name}[] = {{{body}}};"


class Reader:
    """Hands out pieces of a flat parameter vector as leaves of a graph."""

    def __init__(self, salt, scale):
        self.salt, self.scale, self.leaves = salt, scale, []
        self.count = 0

    def take(self, *shape):
        size = torch.Size(shape).numel()
        values = numbers(self.count + size, self.salt, self.scale)[self.count:]
        self.count += size
        leaf = values.reshape(shape).clone().requires_grad_()
        self.leaves.append(leaf)
        return leaf

    def gradient(self):
        return torch.cat([leaf.grad.flatten() for leaf in self.leaves])


def hidden_layers(reader, x, sizes, activation, normalised):
    for size in sizes:
        x = x @ reader.take(x.shape[1], size) + reader.take(size)
        if normalised:
            gain, bias = reader.take(size), reader.take(size)
            x = torch.nn.functional.layer_norm(x, (size,), gain, bias)
        x = activation(x)
    return x


def network(name, observation, hidden, heads, rows, shared, activation, every, normalised=False):
    """heads: (width, constant). Parameters are taken in the order of our manifest."""
    reader = Reader(salt=1, scale=0.25)
    x = numbers(rows * observation, 2, 1.0).reshape(rows, observation).requires_grad_()
    trunk = hidden_layers(reader, x, hidden, activation, normalised) if shared else None
    outputs = []
    for width, constant in heads:
        if constant:
            outputs.append(reader.take(width).expand(rows, width))
            continue
        top = trunk if shared else hidden_layers(reader, x, hidden, activation, normalised)
        outputs.append(top @ reader.take(top.shape[1], width) + reader.take(width))
    loss = sum((output * numbers(output.numel(), 3 + i, 1.0).reshape(output.shape)).sum()
               for i, output in enumerate(outputs))
    loss.backward()
    lines = [f"// {name}: every output, head by head; every {every}th entry of the gradient.",
             array(f"k{name}Outputs", torch.cat([output.flatten() for output in outputs])),
             array(f"k{name}Gradient", reader.gradient()[::every])]
    if normalised:
        lines += ["// The gradient of its inputs.", array(f"k{name}InputGradient", x.grad.flatten())]
    return lines


def adam(name, clip):
    parameter = numbers(11, 5, 1.0).requires_grad_()
    optimiser = torch.optim.Adam([parameter], lr=1.0, betas=(0.9, 0.999), eps=1e-5)
    norms = []
    for step in range(4):
        parameter.grad = numbers(11, 6 + step, 0.5)
        norms.append(torch.nn.utils.clip_grad_norm_([parameter], clip if clip else 1e9))
        optimiser.param_groups[0]["lr"] = 0.01 / (step + 1)
        optimiser.step()
    return [f"// torch.optim.Adam after 4 steps, gradients {'clipped to ' + str(clip) if clip else 'as they are'}.",
            array(f"k{name}", parameter.detach()), array(f"k{name}Norms", norms)]


def categorical():
    logits = numbers(6 * 5, 20, 3.0).reshape(6, 5)
    actions = torch.tensor([0, 1, 2, 3, 4, 0])
    plain = torch.distributions.Categorical(logits=logits)
    mask = (torch.arange(30).reshape(6, 5) * 7 % 3) != 1
    mask[torch.arange(6), actions] = True
    masked = torch.distributions.Categorical(logits=logits.masked_fill(~mask, -1e30))
    parts = [torch.distributions.Categorical(logits=logits[:, :2]),
             torch.distributions.Categorical(logits=logits[:, 2:])]
    pairs = [actions % 2, actions % 3]
    return ["// torch.distributions.Categorical: plain, masked, and as two of 2 and 3 choices.",
            array("kCategoricalLogProbability", plain.log_prob(actions)),
            array("kCategoricalEntropy", plain.entropy()),
            array("kMaskedLogProbability", masked.log_prob(actions)),
            array("kMaskedEntropy", masked.entropy()),
            array("kPairLogProbability", sum(p.log_prob(a) for p, a in zip(parts, pairs))),
            array("kPairEntropy", sum(p.entropy() for p in parts))]


def gaussian():
    mean = numbers(15, 21, 2.0).reshape(5, 3)
    log_std = numbers(3, 22, 1.0)
    action = numbers(15, 23, 3.0).reshape(5, 3)
    normal = torch.distributions.Normal(mean, log_std.exp())
    return ["// torch.distributions.Normal, summed over 3 elements.",
            array("kGaussianLogProbability", normal.log_prob(action).sum(1)),
            array("kGaussianEntropy", normal.entropy().sum(1))]


def write(name, lines, tool="record_networks.py"):
    head = ["#pragma once", "", f"// Written by tools/{tool} with torch {torch.__version__}; not for editing.", "",
            "namespace menger::recorded {", ""]  # fmt: skip
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as file:
        file.write("\n".join(head + lines + ["", "}  // namespace menger::recorded", ""]))


def main():
    torch.set_num_threads(1)
    separate = network("Separate", 4, [64, 64], [(2, False), (1, False)], rows=37, shared=False, activation=torch.tanh, every=101)
    shared = network("Shared", 5, [12, 20], [(18, False), (3, True), (1, False)], rows=9, shared=True, activation=torch.relu,
                     every=7)  # fmt: skip
    linear = network("Linear", 3, [], [(2, False)], rows=4, shared=False, activation=torch.tanh, every=1)
    write("network_test_values.h", separate + shared + linear + adam("Adam", None) + adam("ClippedAdam", 0.5) + categorical()
          + gaussian())  # fmt: skip
    tanh = network("NormTanh", 5, [11, 40], [(2, False), (1, False)], rows=9, shared=False, activation=torch.tanh, every=7,
                   normalised=True)  # fmt: skip
    relu = network("NormRelu", 3, [12, 20], [(4, False), (3, True), (1, False)], rows=7, shared=True, activation=torch.relu,
                   every=5, normalised=True)  # fmt: skip
    write("layer_norm_test_values.h", tanh + relu)


if __name__ == "__main__":
    main()
