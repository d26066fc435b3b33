"""Records what torch computes of pixels with numbers beside them, for src/menger/networks/torch/torch_parts_test.cc.

Run with an interpreter that has torch:
    python tools/record_pixels.py     rewrites src/menger/networks/torch/parts_test_values.h

Inputs are computed with the same short formula on both sides, as record_networks.py says.
"""

import os

import torch

from record_networks import Reader, array, numbers, write


def network(name, convolutions, features, cells, rows, steps, resets, every):
    """An image of 2 x 36 x 36 with 3 numbers beside it, in float64: convolutions, a dense layer (one part a head, or one for a
    torch.lstm_cell), a policy of 3 and a value."""
    reader = Reader(salt=1, scale=0.0625)
    take = lambda *shape: reader.take(*shape).double()
    image = (numbers(rows * 2 * 36 * 36, 2, 1.0) + 1.0) * 128.0
    x = image.to(torch.uint8).double().reshape(rows, 2, 36, 36) / 255
    vector = numbers(rows * 3, 30, 2.0).double().reshape(rows, 3).requires_grad_()
    for channels, kernel, stride in convolutions:
        x = torch.nn.functional.conv2d(x, take(channels, x.shape[1], kernel, kernel), take(channels), stride).relu()
    x = torch.cat([x.permute(0, 2, 3, 1).flatten(1), vector], dim=1)
    width = features if cells else 2 * features
    x = (x @ take(x.shape[1], width) + take(width)).relu()
    tops = [x, x] if cells else x.split(features, dim=1)
    if cells:
        # Ours are candidate, input, forget and output; torch's input, forget, candidate and output.
        torchs = lambda weight: torch.cat([weight[..., i * cells:(i + 1) * cells] for i in (1, 2, 0, 3)], dim=-1)
        of_input, of_hidden, bias = take(features, 4 * cells), take(cells, 4 * cells), take(4 * cells)
        sequences = rows // steps
        hidden, cell = numbers(sequences * 2 * cells, 31, 0.5).double().reshape(sequences, 2 * cells).split(cells, dim=1)
        after = []
        for step in range(steps):
            kept = torch.tensor([0.0 if step * sequences + i in resets else 1.0 for i in range(sequences)]).double()[:, None]
            hidden, cell = torch.lstm_cell(x[step * sequences:(step + 1) * sequences], (hidden * kept, cell * kept),
                                           torchs(of_input).T, torchs(of_hidden).T, torchs(bias))  # fmt: skip
            after.append(hidden)
        tops = [torch.cat(after)] * 2
    outputs = [top @ take(top.shape[1], head) + take(head) for top, head in zip(tops, (3, 1))]
    loss = sum((output * numbers(output.numel(), 3 + i, 1.0).double().reshape(output.shape)).sum()
               for i, output in enumerate(outputs))
    loss.backward()
    lines = [f"// {name}: every output, head by head; every {every}th entry of the gradient; that of the vector.",
             array(f"k{name}Outputs", torch.cat([output.flatten() for output in outputs])),
             array(f"k{name}Gradient", reader.gradient()[::every])]
    return lines if cells else [*lines, array(f"k{name}VectorGradient", vector.grad.flatten())]


def main():
    torch.set_num_threads(1)
    parts = network("Parts", [(16, 8, 4), (32, 4, 2)], 256, 0, rows=4, steps=1, resets=(), every=1009)
    memory = network("Memory", [(32, 8, 4), (64, 4, 2), (64, 3, 1)], 512, 5, rows=10, steps=5, resets=(5,), every=1009)
    write(os.path.join("torch", "parts_test_values.h"), parts + memory, tool="record_pixels.py")


main()
