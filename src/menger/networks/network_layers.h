#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "menger/networks/network.h"
#include "menger/parameters/manifest.h"

namespace menger {

// A network as plain data, for whoever computes it without this program: a list of layers, each
// after the one that it reads, with float32 weights.
struct NetworkLayer {
  enum class Kind : std::uint8_t { kDense, kConvolution, kLstm, kLayerNorm, kJoin };
  enum class Activation : std::uint8_t { kNone, kTanh, kRelu };

  // Every layer reads and gives one row of numbers. The rows of an image that the network is given
  // are [channels, height, width], those of images between layers [height, width, channels].
  Kind kind = Kind::kDense;
  Activation activation = Activation::kNone;
  int source = -1;  // The layer that it reads; -1: what the network is given.
  int inputs = 0;
  int outputs = 0;

  // Of a convolution without padding: what it reads, and its square kernel.
  int channels = 0;
  int height = 0;
  int width = 0;
  int kernel = 0;
  int stride = 0;

  // Dense: activation(inputs x weight + bias), [inputs, outputs] and [outputs].
  // Convolution: [filters, channels, kernel, kernel] and [filters].
  // LSTM: [inputs, 4 outputs] and [4 outputs]: the candidate and the input, forget and output gate;
  // `recurrent` [outputs, 4 outputs] multiplies the hidden values before. Its state is the hidden
  // values, then the cells, zero at an episode's start.
  // Layer normalisation: activation(normalised x weight + bias), [outputs] and [outputs]: a row
  // less its mean, over the root of its variance + 1e-5.
  // Join: what it reads, then the numbers beside the image.
  std::vector<float> weight;
  std::vector<float> recurrent;
  std::vector<float> bias;
};

struct NetworkLayers {
  int inputs = 0;  // Of a row: an image or numbers,
  int beside = 0;  // of which the last so many are the numbers beside an image.
  std::vector<NetworkLayer> layers;
  std::vector<int> heads;  // The layer that gives each.

  int state_width() const;  // Floats that all LSTM layers remember.
};

// The layers that the named heads need, in the order of the names; none may be constant. Pixels are
// given as 0 .. 255: their scale is in the first weights. Noise of a NoisyNetwork's weights is left
// out. Throws FailedPrecondition, naming the array, if the manifest is not that of such a network.
NetworkLayers LayersOf(const NetworkSpec& spec, const ParameterManifest& manifest,
                       std::span<const float> parameters, std::span<const std::string> heads);

}  // namespace menger
