#include "menger/policies/bundle_reader.h"

#include <cstring>
#include <stdexcept>

#include "menger/networks/kernels/kernels.h"
#include "menger/policies/bundle_format.h"

namespace menger {
namespace {

namespace format = bundle_format;

constexpr std::int64_t kNumbersMax = std::int64_t{1} << 28;  // Of a row anywhere in a policy.
constexpr int kDimensionsMax = 8;

[[noreturn]] void Fail(const std::string& what) { throw std::runtime_error(what); }

void Require(bool condition, const char* what) {
  if (!condition) Fail(std::string("the bundle is inconsistent: ") + what);
}

class Reader {
 public:
  Reader(const std::uint8_t* bytes, std::size_t size) : at_(bytes), left_(size) {}

  template <typename T>
  T Value() {
    T value;
    std::memcpy(&value, Take(sizeof(T)), sizeof(T));
    return value;
  }

  int Number(std::int64_t minimum, std::int64_t maximum, const char* what) {
    const std::int64_t number = Value<std::int32_t>();
    if (number < minimum || number > maximum) {
      Fail(std::string("the bundle is inconsistent: ") + what + " is " + std::to_string(number) +
           "; it must be " + std::to_string(minimum) + " to " + std::to_string(maximum));
    }
    return static_cast<int>(number);
  }

  std::string Text() {
    const auto size = static_cast<std::size_t>(Number(0, kNumbersMax, "the length of a text"));
    const auto* const from = Take((size + 3) / 4 * 4);
    return {reinterpret_cast<const char*>(from), size};
  }

  // `count` < 0: any number.
  std::vector<float> Floats(std::int64_t count, const char* what) {
    const auto found = static_cast<std::size_t>(Number(0, 4 * kNumbersMax, "a number of floats"));
    Require(count < 0 || static_cast<std::int64_t>(found) == count, what);
    const auto* const from = Take(found * sizeof(float));
    std::vector<float> values(found);
    if (found > 0) std::memcpy(values.data(), from, found * sizeof(float));
    return values;
  }

  bool at_end() const { return left_ == 0; }

 private:
  const std::uint8_t* Take(std::size_t size) {
    if (size > left_) Fail("the bundle ends too early");
    const std::uint8_t* const from = at_;
    at_ += size;
    left_ -= size;
    return from;
  }

  const std::uint8_t* at_;
  std::size_t left_;
};

BundleLeaf ReadLeaf(Reader& reader) {
  BundleLeaf leaf;
  leaf.name = reader.Text();
  leaf.dtype = reader.Number(0, format::kFloat64, "a data type");
  leaf.space = reader.Number(0, format::kLength, "a space");
  const int dimensions = reader.Number(0, kDimensionsMax, "a number of dimensions");
  std::int64_t elements = 1;
  for (int i = 0; i < dimensions; ++i) {
    leaf.shape.push_back(reader.Number(1, kNumbersMax, "a dimension"));
    elements *= leaf.shape.back();
    Require(elements <= kNumbersMax, "an array is too large");
  }
  leaf.elements = static_cast<int>(elements);
  std::int64_t choices = 0;
  const int counts = reader.Number(0, kNumbersMax, "a number of counts");
  for (int i = 0; i < counts; ++i) {
    leaf.counts.push_back(reader.Number(1, kNumbersMax, "a count of choices"));
    choices += leaf.counts.back();
    Require(choices <= kNumbersMax, "an element has too many choices");
  }
  if (leaf.is_code()) {
    Require(leaf.dtype == format::kInt64 && counts == leaf.elements,
            "a code needs int64 elements with a count each");
  }
  return leaf;
}

// [inner, columns] with its rows padded.
std::vector<float> Pad(const std::vector<float>& values, int inner, int columns) {
  std::vector<float> padded(static_cast<std::size_t>(inner) * Padded(columns));
  for (int row = 0; row < inner; ++row) {
    std::memcpy(padded.data() + static_cast<std::size_t>(row) * Padded(columns),
                values.data() + static_cast<std::size_t>(row) * columns, sizeof(float) * columns);
  }
  return padded;
}

// A convolution's [filters, patch] as the matrix that patches are multiplied by.
std::vector<float> Transposed(const std::vector<float>& values, int filters, int patch) {
  std::vector<float> result(static_cast<std::size_t>(patch) * Padded(filters));
  for (int filter = 0; filter < filters; ++filter) {
    for (int i = 0; i < patch; ++i) {
      result[static_cast<std::size_t>(i) * Padded(filters) + filter] =
          values[static_cast<std::size_t>(filter) * patch + i];
    }
  }
  return result;
}

void ReadConvolution(Reader& reader, BundleLayer& layer) {
  Require(layer.channels > 0 && layer.kernel > 0 && layer.stride > 0 &&
              layer.kernel <= layer.height && layer.kernel <= layer.width,
          "a convolution's kernel does not fit its image");
  Require(std::int64_t{layer.channels} * layer.height * layer.width == layer.inputs,
          "a convolution's image is not what it reads");
  const int pixels = layer.out_height() * layer.out_width();
  Require(layer.outputs % pixels == 0, "a convolution's outputs are not whole images");
  const int filters = layer.filters();
  layer.weight = Transposed(
      reader.Floats(std::int64_t{filters} * layer.patch(), "a convolution's weights are others"),
      filters, layer.patch());
  reader.Floats(0, "a convolution has recurrent weights");
  layer.bias = Pad(reader.Floats(filters, "a convolution's bias is of another size"), 1, filters);
}

void ReadLayerNorm(Reader& reader, BundleLayer& layer) {
  Require(layer.outputs == layer.inputs, "a normalisation gives another number than it reads");
  layer.weight = Pad(reader.Floats(layer.outputs, "a normalisation's gain is of another size"), 1,
                     layer.outputs);
  reader.Floats(0, "a normalisation has recurrent weights");
  layer.bias = Pad(reader.Floats(layer.outputs, "a normalisation's bias is of another size"), 1,
                   layer.outputs);
}

void ReadJoin(Reader& reader, const PolicyBundle& bundle, const BundleLayer& layer) {
  Require(bundle.beside > 0 && layer.outputs == layer.inputs + bundle.beside * bundle.frame_stack,
          "a join gives another number than what it reads and what is beside the image");
  for (int i = 0; i < 3; ++i) reader.Floats(0, "a join has weights");
}

BundleLayer ReadLayer(Reader& reader, const PolicyBundle& bundle) {
  const std::vector<BundleLayer>& before = bundle.layers;
  BundleLayer layer;
  layer.kind = reader.Number(0, format::kJoin, "a kind of layer");
  layer.activation = reader.Number(0, format::kRelu, "an activation function");
  layer.source = reader.Number(-1, static_cast<std::int64_t>(before.size()) - 1,
                               "the layer that a layer reads");
  layer.inputs = reader.Number(1, kNumbersMax, "a layer's number of inputs");
  layer.outputs = reader.Number(1, kNumbersMax / 4, "a layer's number of outputs");
  const int inputs = bundle.image_size() * bundle.frame_stack;
  const int given = layer.source < 0 ? inputs : before[layer.source].outputs;
  Require(layer.inputs == given, "a layer reads another number of inputs than there are");
  for (int* const number :
       {&layer.channels, &layer.height, &layer.width, &layer.kernel, &layer.stride}) {
    *number = reader.Number(0, 1 << 14, "a size of an image");
  }
  if (layer.kind == format::kConvolution) {
    ReadConvolution(reader, layer);
    return layer;
  }
  if (layer.kind == format::kLayerNorm) {
    ReadLayerNorm(reader, layer);
    return layer;
  }
  if (layer.kind == format::kJoin) {
    ReadJoin(reader, bundle, layer);
    return layer;
  }
  const bool lstm = layer.kind == format::kLstm;
  const int columns = lstm ? 4 * layer.outputs : layer.outputs;
  layer.weight = Pad(
      reader.Floats(std::int64_t{layer.inputs} * columns, "a layer's weights are of another size"),
      layer.inputs, columns);
  layer.recurrent = reader.Floats(lstm ? std::int64_t{layer.outputs} * columns : 0,
                                  "a layer's recurrent weights are of another size");
  if (lstm) layer.recurrent = Pad(layer.recurrent, layer.outputs, columns);
  layer.bias = Pad(reader.Floats(columns, "a layer's bias is of another size"), 1, columns);
  return layer;
}

void ReadObservation(Reader& reader, bool has_beside, PolicyBundle& bundle) {
  const int leaves = reader.Number(1, 1 << 16, "the number of observations");
  for (int i = 0; i < leaves; ++i) bundle.observation.push_back(ReadLeaf(reader));
  bundle.mask_leaf = reader.Number(-1, leaves - 1, "the action mask");
  bundle.frame_stack = reader.Number(1, 1 << 10, "the frame stack");
  std::int64_t size = 0;
  for (int i = 0; i < leaves; ++i) {
    if (i != bundle.mask_leaf) size += bundle.observation[i].encoded_size();
  }
  Require(size > 0 && size * bundle.frame_stack <= kNumbersMax, "an observation's size");
  bundle.frame_size = static_cast<int>(size);
  if (has_beside) {
    bundle.beside = reader.Number(1, size - 1, "the numbers beside an image");
    Require(bundle.mask_leaf != 0 && bundle.observation[0].encoded_size() == bundle.image_size(),
            "its first array is not the image that has numbers beside it");
  }
  const std::int64_t normalised = bundle.beside > 0 ? bundle.beside : size;
  bundle.scale = reader.Floats(-1, "");
  Require(bundle.scale.empty() ||
              static_cast<std::int64_t>(bundle.scale.size()) == normalised * bundle.frame_stack,
          "the normalisation is of another size than the observation");
  bundle.shift = reader.Floats(static_cast<std::int64_t>(bundle.scale.size()),
                               "the normalisation's shifts are not as many as its scales");
  bundle.clip = reader.Value<float>();
}

// The widths of the heads must be what the rule makes an action of.
void CheckRule(const PolicyBundle& bundle) {
  const auto width = [&](std::size_t head) { return bundle.layers[bundle.heads[head]].outputs; };
  const BundleLeaf& action = bundle.action;
  int choices = 0;
  for (const int count : action.counts) choices += count;
  if (bundle.rule == format::kMean) {
    Require(bundle.heads.size() == 1 && action.dtype == format::kFloat32 &&
                width(0) == action.elements && bundle.mask_leaf < 0,
            "the network's output is not the action");
  } else if (bundle.rule == format::kLargestLogit) {
    Require(bundle.heads.size() == 1 && action.is_code() && width(0) == choices,
            "the network's outputs are not the choices of the action");
  } else {
    const std::int64_t all = std::int64_t{bundle.actions} * bundle.atoms;
    Require(bundle.heads.size() == (bundle.duelling ? 2 : 1) && action.is_code() &&
                action.elements == 1 && choices == bundle.actions && width(0) == all &&
                (!bundle.duelling || width(1) == bundle.atoms),
            "the network's outputs are not the values of the actions");
  }
  if (bundle.mask_leaf >= 0) {
    const BundleLeaf& mask = bundle.observation[bundle.mask_leaf];
    Require(mask.dtype == format::kUint8 && mask.elements == choices,
            "the action mask has not one uint8 flag for each choice");
  }
}

void ReadRule(Reader& reader, PolicyBundle& bundle) {
  bundle.rule = reader.Number(0, format::kLargestValue, "the rule");
  const int heads = reader.Number(1, 2, "the number of heads");
  for (int i = 0; i < heads; ++i) {
    bundle.heads.push_back(
        reader.Number(0, static_cast<std::int64_t>(bundle.layers.size()) - 1, "a head"));
  }
  bundle.return_model = reader.Number(0, format::kQuantiles, "the model of returns");
  bundle.actions = reader.Number(1, kNumbersMax, "the number of actions");
  bundle.atoms = reader.Number(1, 1 << 20, "the number of atoms");
  bundle.duelling = reader.Number(0, 1, "duelling") != 0;
  bundle.return_minimum = reader.Value<float>();
  bundle.return_maximum = reader.Value<float>();
  bundle.action = ReadLeaf(reader);
  bundle.low = reader.Floats(-1, "");
  bundle.high = reader.Floats(static_cast<std::int64_t>(bundle.low.size()), "the action's bounds");
  Require(bundle.low.empty() || static_cast<int>(bundle.low.size()) == bundle.action.elements,
          "the action's bounds");
  CheckRule(bundle);
}

}  // namespace

bool BundleLeaf::is_code() const {
  return space == format::kDiscrete || space == format::kMultiDiscrete;
}

int BundleLeaf::encoded_size() const {
  if (!is_code()) return elements;
  int size = 0;
  for (const int count : counts) size += count;
  return size;
}

PolicyBundle ReadBundle(const std::uint8_t* bytes, std::size_t size) {
  if (size < format::kHeaderBytes || std::memcmp(bytes, format::kMagic, 8) != 0) {
    Fail("not a bundle of `menger export`");
  }
  Reader header(bytes + 8, format::kHeaderBytes - 8);
  const auto version = header.Value<std::uint32_t>();
  if (version != format::kVersion && version != format::kBesideVersion) {
    Fail("the bundle is of version " + std::to_string(version) + "; this library reads " +
         std::to_string(format::kVersion) + " and " + std::to_string(format::kBesideVersion));
  }
  const auto checksum = header.Value<std::uint32_t>();
  const std::size_t body = size - format::kHeaderBytes;
  if (header.Value<std::uint64_t>() != body ||
      format::Checksum(bytes + format::kHeaderBytes, body) != checksum) {
    Fail("the bundle is cut short or altered");
  }
  Reader reader(bytes + format::kHeaderBytes, body);
  PolicyBundle bundle;
  bundle.about = reader.Text();
  ReadObservation(reader, version == format::kBesideVersion, bundle);
  const int layers = reader.Number(1, 1 << 16, "the number of layers");
  for (int i = 0; i < layers; ++i) {
    bundle.layers.push_back(ReadLayer(reader, bundle));
  }
  ReadRule(reader, bundle);
  Require(reader.at_end(), "something follows its end");
  return bundle;
}

}  // namespace menger
