#include "menger/policies/bundle.h"

#include <bit>
#include <limits>
#include <span>
#include <string_view>

#include "menger/base/error.h"
#include "menger/policies/bundle_format.h"

namespace menger {
namespace {

static_assert(std::endian::native == std::endian::little, "bundles are little-endian");

// The codes of a bundle are those of our enumerations, in the same order.
static_assert(static_cast<int>(DataType::kFloat64) == bundle_format::kFloat64);
static_assert(static_cast<int>(Space::kLength) == bundle_format::kLength);
static_assert(static_cast<int>(NetworkLayer::Kind::kJoin) == bundle_format::kJoin);
static_assert(static_cast<int>(NetworkLayer::Activation::kRelu) == bundle_format::kRelu);
static_assert(static_cast<int>(ActionRule::kLargestValue) == bundle_format::kLargestValue);
static_assert(static_cast<int>(ReturnModel::kQuantiles) == bundle_format::kQuantiles);

class BundleWriter {
 public:
  void Write(std::int64_t number) {
    if (number < std::numeric_limits<std::int32_t>::min() ||
        number > std::numeric_limits<std::int32_t>::max()) {
      throw InvalidArgument("{} does not fit into a bundle, whose numbers have 32 bits", number);
    }
    Append(static_cast<std::int32_t>(number));
  }

  template <typename Enumeration>
  requires std::is_enum_v<Enumeration>
  void Write(Enumeration code) { Write(static_cast<std::int64_t>(code)); }

  void Write(float value) { Append(value); }

  void Write(std::span<const float> values) {
    Write(static_cast<std::int64_t>(values.size()));
    body_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }

  void Write(std::string_view text) {
    Write(static_cast<std::int64_t>(text.size()));
    body_.append(text).append((4 - text.size() % 4) % 4, '\0');
  }

  void Write(const std::vector<std::int64_t>& numbers) {
    Write(static_cast<std::int64_t>(numbers.size()));
    for (const std::int64_t number : numbers) Write(number);
  }

  void Write(const LeafSpec& leaf) {
    Write(std::string_view(leaf.name));
    Write(leaf.dtype);
    Write(leaf.space);
    Write(leaf.shape);
    Write(leaf.counts);
  }

  void Write(const NetworkLayer& layer) {
    Write(layer.kind);
    Write(layer.activation);
    for (const int number : {layer.source, layer.inputs, layer.outputs, layer.channels,
                             layer.height, layer.width, layer.kernel, layer.stride}) {
      Write(std::int64_t{number});
    }
    for (const auto* const values : {&layer.weight, &layer.recurrent, &layer.bias}) {
      Write(std::span<const float>(*values));
    }
  }

  std::string File(std::uint32_t version) const {
    std::string file(bundle_format::kMagic);
    const auto append = [&file](const auto& value) {
      file.append(reinterpret_cast<const char*>(&value), sizeof(value));
    };
    append(version);
    append(bundle_format::Checksum(body_.data(), body_.size()));
    append(static_cast<std::uint64_t>(body_.size()));
    return file + body_;
  }

 private:
  template <typename T>
  void Append(T value) {
    body_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string body_;
};

// One bound an element.
std::vector<float> BoundsOf(const std::vector<double>& bounds, std::int64_t elements) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < elements; ++i) {
    values.push_back(static_cast<float>(bounds.size() == 1 ? bounds[0] : bounds[i]));
  }
  return values;
}

}  // namespace

std::string BundleOf(const PolicyDescription& policy, const std::string& about) {
  BundleWriter writer;
  writer.Write(std::string_view(about));
  writer.Write(static_cast<std::int64_t>(policy.observation.size()));
  for (const LeafSpec& leaf : policy.observation) writer.Write(leaf);
  writer.Write(std::int64_t{policy.mask_leaf});
  writer.Write(std::int64_t{policy.frame_stack});
  const bool beside = policy.network.beside > 0;
  if (beside) writer.Write(std::int64_t{policy.network.beside / policy.frame_stack});
  writer.Write(std::span<const float>(policy.scale));
  writer.Write(std::span<const float>(policy.shift));
  writer.Write(policy.observation_clip);
  writer.Write(static_cast<std::int64_t>(policy.network.layers.size()));
  for (const NetworkLayer& layer : policy.network.layers) writer.Write(layer);
  writer.Write(policy.rule);
  writer.Write(std::vector<std::int64_t>(policy.network.heads.begin(), policy.network.heads.end()));
  const ActionValues& values = policy.values;
  writer.Write(values.model);
  writer.Write(std::int64_t{values.actions});
  writer.Write(std::int64_t{values.atoms});
  writer.Write(std::int64_t{values.duelling});
  writer.Write(values.support.minimum);
  writer.Write(values.support.maximum);
  writer.Write(policy.action);
  const std::int64_t clipped = policy.clips_action ? policy.action.elements() : 0;
  writer.Write(std::span<const float>(BoundsOf(policy.action.low, clipped)));
  writer.Write(std::span<const float>(BoundsOf(policy.action.high, clipped)));
  return writer.File(beside ? bundle_format::kBesideVersion : bundle_format::kVersion);
}

}  // namespace menger
