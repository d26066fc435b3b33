"""Records what NumPy's generators draw, for the tests of src/menger/base/random.h.

Run with an interpreter that has NumPy 2:
    python tools/record_random.py            rewrites src/menger/base/random_test_values.h
    python tools/record_random.py --tables   rewrites ziggurat_tables.h there too; needs binutils

The tables are the constants of NumPy's normal distribution. They were once computed in rounded
arithmetic that cannot be repeated from the formulas alone, so they are read from the static
library that every NumPy wheel carries.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

import numpy
from numpy.random import PCG64, Generator, SeedSequence

BASE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "menger", "base")
SEEDS = [0, 7, 42, 2**32, 2**63 + 5, 2**64 - 1]
RANGES = [(0, 1), (0, 2), (-3, 4), (0, 1000), (0, 3 * 2**30), (0, 2**32), (5, 2**32 + 6),
          (-(2**62), 2**62 + 1), (-(2**63), 2**63 - 1)]


def generator(seed):
    return Generator(PCG64(SeedSequence(seed)))


def real(value):
    return float(value).hex()


def integer(value):
    # The most negative int64 has no literal of its own.
    return "INT64_MIN" if value == -(2**63) else str(int(value))


def array(kind, name, values, text):
    body = ", ".join(text(value) for value in values)
    return f"inline constexpr {kind} {name}[] = {{{body}}};"


def word(value):
    return f"{int(value):#x}u"


def digest(values):
    """FNV-1a over 64-bit words: one number that stands for many draws."""
    state = 0xCBF29CE484222325
    for value in values.view(numpy.uint64).tolist():
        state = ((state ^ value) * 0x100000001B3) & (2**64 - 1)
    return state


def stream(seed):
    rows = [f"// The stream of seed {seed}: each line starts afresh unless it says otherwise."]
    tag = f"Seed{seed}"
    words = generator(seed).bit_generator.random_raw(4)
    rows.append(array("uint64_t", f"k{tag}Words64", words, word))
    # integers(0, 2**32) draws one 32-bit word each; the 64-bit draw leaves a half buffered.
    mixed = generator(seed)
    values = [int(v) for v in mixed.integers(0, 2**32, 3, dtype=numpy.uint64)]
    values.append(int(mixed.bit_generator.random_raw()))
    values.append(int(mixed.integers(0, 2**32, dtype=numpy.uint64)))
    rows.append("// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.")
    rows.append(array("uint64_t", f"k{tag}Mixed", values, word))
    rows.append(array("double", f"k{tag}Doubles", generator(seed).random(4), real))
    rows.append(array("double", f"k{tag}Uniform", generator(seed).uniform(-0.05, 0.05, 4), real))
    rows.append(array("double", f"k{tag}Normal", generator(seed).normal(1.5, 0.25, 8), real))
    rows.append("// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.")
    rows.append(f"inline constexpr uint64_t k{tag}NormalDigest = "
                f"{word(digest(generator(seed).standard_normal(200000)))};")
    draw = generator(seed)
    values = [draw.integers(low, high) for low, high in RANGES for _ in range(3)]
    rows.append("// Three draws from each of kRanges in one stream.")
    rows.append(array("int64_t", f"k{tag}Integers", values, integer))
    rows.append(array("int64_t", f"k{tag}Permutation", generator(seed).permutation(12), integer))
    shuffled = numpy.arange(9)
    generator(seed).shuffle(shuffled)
    rows.append(array("int64_t", f"k{tag}Shuffle", shuffled, integer))
    return "\n".join(rows) + "\n"


def sequences():
    child = SeedSequence(7).spawn(3)[2]
    grandchild = child.spawn(2)[1]
    rows = [
        array("uint32_t", "kSequence0", SeedSequence(0).generate_state(8), word),
        array("uint64_t", "kSequence7In64", SeedSequence(7).generate_state(5, numpy.uint64), word),
        array("uint32_t", "kSequenceList",
              SeedSequence([1, 2**40, 0, 3, 4, 5]).generate_state(6), word),
        "// SeedSequence(7).spawn(3)[2], and its spawn(2)[1].",
        array("uint32_t", "kSequenceChild", child.generate_state(4), word),
        array("uint32_t", "kSequenceGrandchild", grandchild.generate_state(4), word),
    ]
    return "\n".join(rows) + "\n"


def write(name, text):
    path = os.path.join(BASE, name)
    with open(path, "w") as file:
        file.write(text)
    subprocess.run(["clang-format", "-i", path], check=True)


def write_values():
    ranges = ", ".join(f"{{{integer(low)}, {integer(high)}}}" for low, high in RANGES)
    write("random_test_values.h", f"""#pragma once

// Written by tools/record_random.py with NumPy {numpy.__version__}; not for editing.

#include <cstdint>

namespace menger::recorded {{

{sequences()}
inline constexpr int64_t kRanges[][2] = {{{ranges}}};

{chr(10).join(stream(seed) for seed in SEEDS)}
}}  // namespace menger::recorded
""")


def read_tables():
    library = os.path.join(os.path.dirname(numpy.__file__), "random", "lib", "libnpyrandom.a")
    with tempfile.TemporaryDirectory() as folder:
        member = "src_distributions_distributions.c.o"
        subprocess.run(["ar", "x", library, member], cwd=folder, check=True)
        data = os.path.join(folder, "data")
        subprocess.run(["objcopy", "-O", "binary", "--only-section=.rodata",
                        os.path.join(folder, member), data], check=True)
        symbols = subprocess.run(["nm", os.path.join(folder, member)], check=True,
                                 capture_output=True, text=True).stdout
        with open(data, "rb") as file:
            content = file.read()
    def table(name, code):
        offset = int(re.search(rf"^([0-9a-f]+) r {name}$", symbols, re.M).group(1), 16)
        return struct.unpack_from(f"<256{code}", content, offset)
    return table("ki_double", "Q"), table("wi_double", "d"), table("fi_double", "d")


def write_tables():
    accept, width, height = read_tables()
    write("ziggurat_tables.h", f"""#pragma once

// Written by tools/record_random.py --tables; not for editing.
//
// The 256 layers of the ziggurat (Marsaglia and Tsang 2000) under the normal density, with the
// constants of NumPy {numpy.__version__} (BSD-3-Clause), because draws are promised to equal
// NumPy's to the last bit.

#include <cstdint>

namespace menger::ziggurat {{

// A 52-bit draw below this is inside the layer above and needs no further test.
{array("uint64_t", "kAccept", accept, word)}

// The width of each layer, divided by 2^52.
{array("double", "kWidth", width, real)}

// The density at the right end of each layer.
{array("double", "kHeight", height, real)}

}}  // namespace menger::ziggurat
""")


if __name__ == "__main__":
    write_values()
    if "--tables" in sys.argv[1:]:
        write_tables()
