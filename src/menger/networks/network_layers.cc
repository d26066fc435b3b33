#include "menger/networks/network_layers.h"

#include <algorithm>
#include <map>

#include "menger/base/error.h"

namespace menger {
namespace {

using Kind = NetworkLayer::Kind;
using Activation = NetworkLayer::Activation;

constexpr int kStrides[] = {4, 2, 1};  // Of nature_cnn; a3c_cnn has the first two convolutions.

// Reads a flat parameter vector array by array, and builds the layers.
class LayerBuilder {
 public:
  LayerBuilder(const NetworkSpec& spec, const ParameterManifest& manifest,
               std::span<const float> parameters)
      : spec_(spec), manifest_(manifest), parameters_(parameters) {
    result_.beside = spec.vector_elements;
    result_.inputs = static_cast<int>(spec.observation.elements()) + result_.beside;
  }

  NetworkLayers Build(std::span<const std::string> heads) {
    const NetworkOptions& options = spec_.options;
    if (options.reads_frames()) {
      AddConvolutions();
      if (result_.beside > 0) AddJoin();
      if (options.remembers()) trunk_ = AddLstm(AddStream(/*head=*/""));
    } else if (options.remembers()) {
      trunk_ = AddLstm(AddHidden("trunk"));
    } else if (spec_.options.shared_trunk) {
      trunk_ = AddHidden("trunk");
    }
    for (const std::string& head : heads) result_.heads.push_back(AddHead(head));
    return std::move(result_);
  }

 private:
  int AddHead(const std::string& name) {
    const NetworkOptions& options = spec_.options;
    if (options.reads_frames() && !options.remembers()) {
      return AddDense(name + "/0", AddStream(name), Activation::kNone);
    }
    if (options.remembers() || options.shared_trunk) {
      return AddDense(name + "/0", trunk_, Activation::kNone);
    }
    const int source = AddHidden(name);
    return AddDense(fmt::format("{}/{}", name, spec_.options.hidden.size()), source,
                    Activation::kNone);
  }

  int AddHidden(const std::string& name) {
    const Activation activation =
        spec_.options.activation == "tanh" ? Activation::kTanh : Activation::kRelu;
    int source = -1;
    for (std::size_t i = 0; i < spec_.options.hidden.size(); ++i) {
      const std::string layer = fmt::format("{}/{}", name, i);
      if (spec_.options.layer_norm) {
        source = AddDense(layer, source, Activation::kNone);
        source = AddLayerNorm(layer + "/norm", source, activation);
      } else {
        source = AddDense(layer, source, activation);
      }
    }
    return source;
  }

  int AddDense(const std::string& name, int source, Activation activation) {
    const ParameterEntry& bias = Entry(name + "/bias");
    NetworkLayer layer{.kind = Kind::kDense,
                       .activation = activation,
                       .source = source,
                       .inputs = OutputsOf(source),
                       .outputs = static_cast<int>(bias.elements())};
    layer.weight = Values(name + "/weight", {layer.inputs, layer.outputs});
    layer.bias = Values(bias);
    return Add(std::move(layer));
  }

  int AddLayerNorm(const std::string& name, int source, Activation activation) {
    NetworkLayer layer{.kind = Kind::kLayerNorm,
                       .activation = activation,
                       .source = source,
                       .inputs = OutputsOf(source),
                       .outputs = OutputsOf(source)};
    layer.weight = Values(name + "/gain", {layer.outputs});
    layer.bias = Values(name + "/bias", {layer.outputs});
    return Add(std::move(layer));
  }

  int AddLstm(int source) {
    const std::string name = "trunk/lstm";
    NetworkLayer layer{.kind = Kind::kLstm,
                       .source = source,
                       .inputs = OutputsOf(source),
                       .outputs = static_cast<int>(spec_.options.lstm_size)};
    const std::int64_t gates = 4 * static_cast<std::int64_t>(layer.outputs);
    layer.weight = Values(name + "/input_weight", {layer.inputs, gates});
    layer.recurrent = Values(name + "/hidden_weight", {layer.outputs, gates});
    layer.bias = Values(name + "/bias", {gates});
    return Add(std::move(layer));
  }

  void AddConvolutions() {
    const Shape& shape = spec_.observation.shape;
    int channels = static_cast<int>(shape[0]);
    int height = static_cast<int>(shape[1]);
    int width = static_cast<int>(shape[2]);
    const std::size_t count = spec_.options.has_convolutions("nature_cnn") ? 3 : 2;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = fmt::format("trunk/conv{}", i);
      const ParameterEntry& weight = Entry(name + "/weight");
      const int filters = static_cast<int>(weight.shape[0]);
      const int kernel = static_cast<int>(weight.shape.back());
      NetworkLayer layer{.kind = Kind::kConvolution,
                         .activation = Activation::kRelu,
                         .source = trunk_,
                         .inputs = channels * height * width,
                         .channels = channels,
                         .height = height,
                         .width = width,
                         .kernel = kernel,
                         .stride = kStrides[i]};
      layer.weight = Values(name + "/weight", {filters, channels, kernel, kernel});
      layer.bias = Values(name + "/bias", {filters});
      if (i == 0) {
        for (float& value : layer.weight) value *= 1.0F / 255.0F;
      }
      channels = filters;
      height = (height - kernel) / layer.stride + 1;
      width = (width - kernel) / layer.stride + 1;
      layer.outputs = channels * height * width;
      trunk_ = Add(std::move(layer));
    }
  }

  void AddJoin() {
    const int inputs = OutputsOf(trunk_);
    trunk_ = Add({.kind = Kind::kJoin,
                  .source = trunk_,
                  .inputs = inputs,
                  .outputs = inputs + result_.beside});
  }

  // The layer after the convolutions; of one with a part for each head, this head's.
  int AddStream(const std::string& head) {
    const int streams = spec_.streams();
    int stream = 0;
    for (const HeadSpec& other : spec_.heads) {
      if (other.name == head) break;
      if (!other.constant && streams > 1) ++stream;
    }
    if (const auto found = streams_.find(stream); found != streams_.end()) return found->second;
    const int all = static_cast<int>(Entry("trunk/linear/bias").elements());
    const int width = all / streams;
    NetworkLayer layer{.kind = Kind::kDense,
                       .activation = Activation::kRelu,
                       .source = trunk_,
                       .inputs = OutputsOf(trunk_),
                       .outputs = width};
    const std::vector<float> weight = Values("trunk/linear/weight", {layer.inputs, all});
    const std::vector<float> bias = Values("trunk/linear/bias", {all});
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(stream) * width;
    for (std::ptrdiff_t row = 0; row < layer.inputs; ++row) {
      const auto begin = weight.begin() + row * all + first;
      layer.weight.insert(layer.weight.end(), begin, begin + width);
    }
    layer.bias.assign(bias.begin() + first, bias.begin() + first + width);
    return streams_[stream] = Add(std::move(layer));
  }

  int Add(NetworkLayer layer) {
    result_.layers.push_back(std::move(layer));
    return static_cast<int>(result_.layers.size()) - 1;
  }

  int OutputsOf(int layer) const {
    return layer < 0 ? result_.inputs : result_.layers[layer].outputs;
  }

  const ParameterEntry& Entry(const std::string& name) const {
    const ParameterEntry* const entry = manifest_.Find(name);
    if (entry != nullptr) return *entry;
    throw FailedPrecondition("a network of kind {} has no array '{}'", spec_.options.kind, name);
  }

  std::vector<float> Values(const ParameterEntry& entry) const {
    const auto begin = parameters_.begin() + entry.offset;
    return {begin, begin + entry.elements()};
  }

  std::vector<float> Values(const std::string& name, const Shape& shape) const {
    const ParameterEntry& entry = Entry(name);
    if (entry.shape == shape) return Values(entry);
    throw FailedPrecondition("array '{}' of a network of kind {} is {}; it must be {}", name,
                             spec_.options.kind, ToString(entry.shape), ToString(shape));
  }

  const NetworkSpec& spec_;
  const ParameterManifest& manifest_;
  const std::span<const float> parameters_;
  NetworkLayers result_;
  int trunk_ = -1;
  std::map<int, int> streams_;  // The layer that each stream has become.
};

}  // namespace

int NetworkLayers::state_width() const {
  int width = 0;
  for (const NetworkLayer& layer : layers) {
    if (layer.kind == Kind::kLstm) width += 2 * layer.outputs;
  }
  return width;
}

NetworkLayers LayersOf(const NetworkSpec& spec, const ParameterManifest& manifest,
                       std::span<const float> parameters, std::span<const std::string> heads) {
  return LayerBuilder(spec, manifest, parameters).Build(heads);
}

}  // namespace menger
