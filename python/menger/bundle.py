"""Reads the file that `menger export --format bundle` writes. src/menger/policies/bundle_format.h describes it byte by byte."""

import json
import math
import struct
import zlib

import numpy

_MAGIC = b"MENGERPO"
_VERSION, _BESIDE_VERSION = 1, 2  # The second: of an image with numbers beside it.
_HEADER = struct.Struct("<8sIIQ")

_DTYPES = ("uint8", "int32", "int64", "float32", "float64")
_SPACES = ("box", "discrete", "multi_discrete", "mask", "length")
_KINDS = ("dense", "convolution", "lstm", "layer_norm", "join")
_ACTIVATIONS = ("none", "tanh", "relu")
_RULES = ("largest_logit", "mean", "largest_value")
_MODELS = ("mean", "categorical", "quantiles")


class Leaf:
    """One array of an observation or an action: `name`, `dtype`, `shape`, `space`, and for codes the `counts` of choices."""

    def __init__(self, reader):
        self.name = reader.text()
        self.dtype = numpy.dtype(reader.choice(_DTYPES))
        self.space = reader.choice(_SPACES)
        self.shape = tuple(reader.numbers())
        self.counts = reader.numbers()

    @property
    def is_code(self):
        """Whether the values are choices, which a network reads as one-hot codes."""
        return self.space in ("discrete", "multi_discrete")

    def __repr__(self):
        counts = f" below {self.counts}" if self.counts else ""
        return f"{self.name}: {self.dtype} {self.shape}{counts}"


class Layer:
    """One layer, as src/menger/networks/network_layers.h describes it; the arrays have their shapes."""

    def __init__(self, reader):
        self.kind = reader.choice(_KINDS)
        self.activation = reader.choice(_ACTIVATIONS)
        self.source, self.inputs, self.outputs = reader.number(), reader.number(), reader.number()
        self.channels, self.height, self.width = reader.number(), reader.number(), reader.number()
        self.kernel, self.stride = reader.number(), reader.number()
        weight, recurrent, self.bias = reader.floats(), reader.floats(), reader.floats()
        if self.kind == "convolution":
            self.weight = weight.reshape(-1, self.channels, self.kernel, self.kernel)
        elif self.kind == "join":
            self.weight = None
        elif self.kind == "layer_norm":
            self.weight = weight.reshape(self.outputs)
        else:
            self.weight = weight.reshape(self.inputs, -1)
            self.recurrent = recurrent.reshape(self.outputs, -1) if recurrent.size else None


class Bundle:
    """All that a bundle holds. Raises ValueError, naming the file, for what is none or is damaged."""

    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        try:
            self._read(content)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"'{path}': the bundle is inconsistent: {error}") from None
        except ValueError as error:
            raise ValueError(f"'{path}': {error}") from None

    def _read(self, content):
        if len(content) < _HEADER.size or not content.startswith(_MAGIC):
            raise ValueError("not a bundle of `menger export`")
        _, version, checksum, size = _HEADER.unpack_from(content)
        if version not in (_VERSION, _BESIDE_VERSION):
            raise ValueError(f"the bundle is of version {version}; this package reads {_VERSION} and {_BESIDE_VERSION}")
        body = content[_HEADER.size:]
        if size != len(body) or zlib.crc32(body) != checksum:
            raise ValueError("the bundle is cut short or altered")
        reader = _Reader(body)
        self.about = json.loads(reader.text())
        self.observation = [Leaf(reader) for _ in range(reader.number())]
        self.mask_leaf = reader.number()
        self.frame_stack = reader.number()
        self.beside = reader.number() if version == _BESIDE_VERSION else 0
        self.scale, self.shift, self.clip = reader.floats(), reader.floats(), numpy.float32(reader.real())
        self.layers = [Layer(reader) for _ in range(reader.number())]
        self.rule = reader.choice(_RULES)
        self.heads = reader.numbers()
        self.return_model = reader.choice(_MODELS)
        self.actions, self.atoms, self.duelling = reader.number(), reader.number(), bool(reader.number())
        self.return_minimum, self.return_maximum = reader.real(), reader.real()
        self.action = Leaf(reader)
        self.low, self.high = reader.floats(), reader.floats()


class _Reader:
    def __init__(self, content):
        self.content, self.at = content, 0

    def number(self):
        return self._unpack("<i", 4)

    def real(self):
        return self._unpack("<f", 4)

    def numbers(self):
        return [self.number() for _ in range(self.number())]

    def choice(self, names):
        return names[self.number()]

    def text(self):
        size = self.number()
        text = self._take(math.ceil(size / 4) * 4)[:size]
        return text.decode()

    def floats(self):
        return numpy.frombuffer(self._take(4 * self.number()), dtype="<f4").astype(numpy.float32)

    def _unpack(self, form, size):
        return struct.unpack(form, self._take(size))[0]

    def _take(self, size):
        if size < 0 or self.at + size > len(self.content):
            raise ValueError("the bundle ends too early")
        self.at += size
        return self.content[self.at - size:self.at]
