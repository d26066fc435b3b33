"""Acts with exported policies. Needs NumPy, and nothing else of Menger: `menger.load(PATH)` makes a Policy."""

import numpy

from menger.bundle import Bundle


class Policy:
    """A greedy policy: what `menger evaluate` plays, and its memory of the episodes that it is in.

    `act` takes one observation and returns one action, or takes a batch (every array with one more dimension in front) and
    returns a batch. An observation of one array is that array; of several, a dict or tuple as Gymnasium has it, nested as it is
    there. Images may be as Gymnasium has them, channels last. Choices count from 0, whatever an environment calls its first.

    Where frames are stacked or the network is recurrent the policy remembers, one memory for each row of the batch: `reset`
    begins episodes anew. One thread at a time.

    `about` says what it is, `observation` lists the arrays that it reads, `action` describes what it gives, `has_memory`
    whether `reset` matters.
    """

    def __init__(self, path):
        bundle = Bundle(path)
        self._bundle = bundle
        self.about = bundle.about
        self.observation = list(bundle.observation)
        self.action = bundle.action
        self._lstm_layers = [i for i, layer in enumerate(bundle.layers) if layer.kind == "lstm"]
        self.has_memory = bundle.frame_stack > 1 or bool(self._lstm_layers)
        self.outputs = None
        self.reset()

    def reset(self, rows=None):
        """Begins an episode in every row, or in those that `rows` marks (flags or indices): the next observation is its first.

        Without `rows` the next batch may have another number of rows."""
        if rows is None:
            self._rows = None  # As many as the next observation has.
            self._frames = None
            self._states = {}
            return
        if self._rows is None:
            return  # All are at their start.
        for memory in [self._frames, *(part for state in self._states.values() for part in state)]:
            if memory is not None:
                memory[numpy.asarray(rows)] = 0

    def act(self, observation):
        """The action for an observation, or an array of them for a batch. Discrete actions are ints (int64 in a batch), others
        arrays. `outputs` then holds what it was chosen by: logits, expected returns, or the action before it was clipped.

        Raises ValueError, naming the array, for what does not fit or is not finite, and where a mask allows nothing."""
        leaves, batched = self._leaves(observation)
        rows = len(leaves[0])
        if self.has_memory and self._rows not in (None, rows):
            raise ValueError(f"{rows} observations follow {self._rows}: call reset() before another number of rows")
        self._rows = rows
        outputs = self._run(self._stacked(self._encode(leaves)))
        actions = self._choose(outputs, leaves)
        self.outputs = outputs if batched else outputs[0]
        if batched:
            return actions
        return int(actions[0]) if self.action.space == "discrete" else actions[0]

    # What comes in.

    def _leaves(self, observation):
        """One array for each leaf, all with a row an environment, and whether they came so."""
        arrays = [_checked(leaf, self._part(observation, leaf.name)) for leaf in self.observation]
        batched = {array.ndim > len(leaf.shape) for array, leaf in zip(arrays, self.observation)}
        if len(batched) > 1:
            first = next(leaf.name for array, leaf in zip(arrays, self.observation) if array.ndim == len(leaf.shape))
            raise ValueError(f"some arrays of the observation are a batch and others are not: '{first}' is none")
        if not batched.pop():
            return [array[None] for array in arrays], False
        if len({len(array) for array in arrays}) > 1:
            sizes = ", ".join(f"'{leaf.name}' has {len(array)}" for array, leaf in zip(arrays, self.observation))
            raise ValueError(f"the arrays of the observation are batches of different sizes: {sizes}")
        return arrays, True

    def _part(self, observation, name):
        """What an environment shows under a name. The only array that is read may come by itself."""
        alone = len(self.observation) == 1 and not isinstance(observation, (dict, str, bytes, type(None)))
        of_tuple = isinstance(observation, tuple) and name.removeprefix("observation/").partition("/")[0].isdigit()
        return observation if alone and not of_tuple else _find(observation, name)

    def _encode(self, leaves):
        parts = []
        for index, (leaf, values) in enumerate(zip(self.observation, leaves)):
            if index == self._bundle.mask_leaf:
                continue
            flat = values.reshape(len(values), -1)
            if leaf.is_code:
                parts += [_one_hot(flat[:, i], count, leaf.name) for i, count in enumerate(leaf.counts)]
            else:
                parts.append(flat.astype(numpy.float32))
        return numpy.concatenate(parts, axis=1)

    def _stacked(self, encoded):
        bundle = self._bundle
        if bundle.frame_stack > 1:
            if self._frames is None:
                self._frames = numpy.zeros((len(encoded), bundle.frame_stack * encoded.shape[1]), numpy.float32)
            self._frames = numpy.concatenate([self._frames[:, encoded.shape[1]:], encoded], axis=1)
            encoded = self._frames
        if bundle.beside:  # Of a stack all images come first.
            frames = encoded.reshape(len(encoded), bundle.frame_stack, -1)
            parts = (frames[:, :, :-bundle.beside], frames[:, :, -bundle.beside:])
            encoded = numpy.concatenate([part.reshape(len(encoded), -1) for part in parts], axis=1)
        if bundle.scale.size:
            pixels = encoded.shape[1] - bundle.scale.size  # Beside numbers.
            normalised = numpy.clip(encoded[:, pixels:] * bundle.scale + bundle.shift, -bundle.clip, bundle.clip)
            encoded = numpy.concatenate([encoded[:, :pixels], normalised], axis=1) if pixels else normalised
        return encoded

    # The network.

    def _run(self, rows):
        results = []
        beside = self._bundle.beside * self._bundle.frame_stack
        images = rows[:, :rows.shape[1] - beside]
        for index, layer in enumerate(self._bundle.layers):
            given = images if layer.source < 0 else results[layer.source]
            if layer.kind == "convolution":
                result = _convolve(layer, given, channels_first=layer.source < 0)
            elif layer.kind == "lstm":
                result = self._remember(index, layer, given)
            elif layer.kind == "join":
                result = numpy.concatenate([given, rows[:, images.shape[1]:]], axis=1)
            elif layer.kind == "layer_norm":
                result = _normalise(layer, given)
            else:
                result = given @ layer.weight + layer.bias
            if layer.activation == "tanh":
                result = numpy.tanh(result)
            elif layer.activation == "relu":
                result = numpy.maximum(result, 0)
            results.append(result)
        heads = [results[head] for head in self._bundle.heads]
        return self._values(heads) if self._bundle.rule == "largest_value" else heads[0]

    def _remember(self, index, layer, given):
        size = layer.outputs
        if index not in self._states:
            self._states[index] = (numpy.zeros((len(given), size), numpy.float32), numpy.zeros((len(given), size), numpy.float32))
        hidden, cells = self._states[index]
        gates = given @ layer.weight + layer.bias + hidden @ layer.recurrent
        candidate = numpy.tanh(gates[:, :size])
        write, keep, show = (_sigmoid(gates[:, i * size:(i + 1) * size]) for i in (1, 2, 3))
        cells = keep * cells + write * candidate
        hidden = show * numpy.tanh(cells)
        self._states[index] = (hidden, cells)
        return hidden

    def _values(self, heads):
        """The expected return of each action."""
        bundle = self._bundle
        atoms = heads[0].reshape(-1, bundle.actions, bundle.atoms)
        if bundle.duelling:
            atoms = atoms - atoms.mean(axis=1, keepdims=True) + heads[1][:, None]
        if bundle.return_model != "categorical":
            return atoms.mean(axis=2)
        weights = numpy.exp(atoms - atoms.max(axis=2, keepdims=True))
        returns = numpy.linspace(bundle.return_minimum, bundle.return_maximum, bundle.atoms, dtype=numpy.float32)
        return (weights @ returns) / weights.sum(axis=2)

    # What goes out.

    def _choose(self, outputs, leaves):
        bundle = self._bundle
        if bundle.rule == "mean":
            actions = numpy.clip(outputs, bundle.low, bundle.high) if bundle.low.size else outputs
            return actions.reshape(-1, *self.action.shape)
        mask = leaves[bundle.mask_leaf].reshape(outputs.shape) if bundle.mask_leaf >= 0 else None
        allowed = outputs if mask is None else numpy.where(mask != 0, outputs, -numpy.inf)
        elements, first = [], 0
        for count in self.action.counts:
            if mask is not None and not (mask[:, first:first + count] != 0).any(axis=1).all():
                name = self.observation[bundle.mask_leaf].name
                raise ValueError(f"'{name}' allows none of an element's choices; it must allow one")
            elements.append(allowed[:, first:first + count].argmax(axis=1))
            first += count
        return numpy.stack(elements, axis=1).reshape(-1, *self.action.shape)


def _find(observation, name):
    """The array called `name` ("observation/position" is the key "position", "observation/0" the first of a tuple) of what an
    environment shows, or the one array itself."""
    path = name.split("/")[1:] if name.startswith("observation/") else [name]
    if isinstance(observation, dict):
        if name in observation:
            return observation[name]
    elif not (isinstance(observation, (tuple, list)) and path[0].isdigit()):
        raise ValueError(f"the observation is {_kind(observation)}; it must be a dict that has '{name}'"
                         + (f", or a tuple with a number {path[0]}" if path[0].isdigit() else ""))  # fmt: skip
    found = observation
    for key in path:
        if isinstance(found, (tuple, list)) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            has = ", ".join(map(str, observation)) if isinstance(observation, dict) else f"{len(observation)} arrays"
            raise ValueError(f"the observation has no '{name}': it has {has}")
    return found


def _kind(observation):
    return "None" if observation is None else f"{type(observation).__name__}"


def _checked(leaf, values):
    """The array as the leaf has it. Numbers of other types are taken if nothing is lost that matters: an int for an int."""
    try:
        array = numpy.asarray(values)
    except ValueError:  # Lists of different lengths.
        raise ValueError(f"'{leaf.name}' is a list of lists of different lengths; it must be an array {leaf.shape}") from None
    if array.dtype.kind not in ("iub" if leaf.dtype.kind in "iu" else "fiub"):
        held = _kind(values) if array.dtype.kind not in "fiub" and not isinstance(values, numpy.ndarray) else array.dtype
        raise ValueError(f"'{leaf.name}' is {held}; it must be {leaf.dtype}")
    array = _channels_first(leaf, array)
    if array.shape != leaf.shape and array.shape[1:] != leaf.shape:
        raise ValueError(f"'{leaf.name}' has shape {array.shape}; it must be {leaf.shape}, or that with a batch in front")
    if array.dtype.kind == "f" and not numpy.isfinite(array).all():
        place = tuple(int(i) for i in numpy.argwhere(~numpy.isfinite(array))[0])
        raise ValueError(f"'{leaf.name}' holds {array[place]} at {place}; it must hold finite numbers")
    if leaf.dtype.kind in "iu" and leaf.is_code:
        return array.astype(numpy.int64, copy=False)
    return array


def _channels_first(leaf, array):
    """An image as Gymnasium has it, [height, width, channels] or [height, width], as the leaf has it."""
    if leaf.dtype != numpy.uint8 or len(leaf.shape) != 3 or leaf.shape in (array.shape, array.shape[1:]):
        return array
    channels, height, width = leaf.shape
    if (height, width, channels) in (array.shape, array.shape[1:]):
        return numpy.moveaxis(array, -1, -3)
    if channels == 1 and (height, width) in (array.shape, array.shape[1:]):
        return array[..., None, :, :]
    return array


def _one_hot(codes, count, name):
    if ((codes < 0) | (codes >= count)).any():
        raise ValueError(f"'{name}' has a value that is not in [0, {count})")
    return (codes[:, None] == numpy.arange(count)).astype(numpy.float32)


def _sigmoid(x):
    return (0.5 * (1 + numpy.tanh(0.5 * x))).astype(numpy.float32)


def _normalise(layer, given):
    """Layer normalisation; the epsilon is that of src/menger/networks/kernels/layer_norm.h."""
    centred = given - given.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / numpy.sqrt(variance + numpy.float32(1e-5)) * layer.weight + layer.bias


def _convolve(layer, given, channels_first):
    """[rows, pixels] to [rows, pixels]: what comes from the observation has its channels first, what goes out last."""
    if channels_first:
        images = given.reshape(-1, layer.channels, layer.height, layer.width)
    else:
        images = given.reshape(-1, layer.height, layer.width, layer.channels).transpose(0, 3, 1, 2)
    windows = numpy.lib.stride_tricks.sliding_window_view(images, (layer.kernel, layer.kernel), axis=(2, 3))
    windows = windows[:, :, ::layer.stride, ::layer.stride]  # [rows, channels, y, x, kernel, kernel]
    patches = windows.transpose(0, 2, 3, 1, 4, 5).reshape(len(images), -1, layer.channels * layer.kernel**2)
    filters = layer.weight.reshape(len(layer.weight), -1).T
    return (patches @ filters + layer.bias).reshape(len(images), -1)
