#include "menger/tensor/spec.h"

#include <limits>
#include <utility>

#include "menger/base/error.h"

namespace menger {

std::int64_t ElementCount(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::string ToString(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

LeafSpec LeafSpec::Box(std::string name, DataType dtype, Shape shape, std::vector<double> low,
                       std::vector<double> high) {
  LeafSpec leaf{.name = std::move(name), .dtype = dtype, .shape = std::move(shape)};
  for (const auto& bound : {low, high}) {
    if (bound.size() != 1 && static_cast<std::int64_t>(bound.size()) != leaf.elements()) {
      throw InvalidArgument("leaf '{}' of shape {} has {} bounds; give one, or one an element",
                            leaf.name, ToString(leaf.shape), bound.size());
    }
  }
  leaf.low = std::move(low);
  leaf.high = std::move(high);
  return leaf;
}

LeafSpec LeafSpec::Discrete(std::string name, std::int64_t count) {
  if (count < 1)
    throw InvalidArgument("leaf '{}' has {} values; at least 1 is needed", name, count);
  return {.name = std::move(name),
          .dtype = DataType::kInt64,
          .shape = {},
          .space = Space::kDiscrete,
          .counts = {count}};
}

LeafSpec LeafSpec::MultiDiscrete(std::string name, std::vector<std::int64_t> counts) {
  for (const std::int64_t count : counts) {
    if (count < 1) {
      throw InvalidArgument("leaf '{}' has an element of {} values; at least 1 is needed", name,
                            count);
    }
  }
  const auto elements = static_cast<std::int64_t>(counts.size());
  return {.name = std::move(name),
          .dtype = DataType::kInt64,
          .shape = {elements},
          .space = Space::kMultiDiscrete,
          .counts = std::move(counts)};
}

LeafSpec LeafSpec::Mask(std::string name, std::int64_t size) {
  return {
      .name = std::move(name), .dtype = DataType::kUint8, .shape = {size}, .space = Space::kMask};
}

LeafSpec LeafSpec::Scalar(std::string name, DataType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return Box(std::move(name), dtype, {}, {-kInfinity}, {kInfinity});
}

Spec::Spec(std::vector<LeafSpec> leaves) : leaves_(std::move(leaves)) {
  for (int i = 0; i < size(); ++i) {
    const std::string& name = leaves_[i].name;
    if (name.empty()) throw InvalidArgument("leaf {} of a spec has no name", i);
    if (Find(name) != i) throw InvalidArgument("a spec has two leaves named '{}'", name);
    if (leaves_[i].elements() < 1) {
      throw InvalidArgument("leaf '{}' has shape {}; every size must be at least 1", name,
                            ToString(leaves_[i].shape));
    }
  }
}

int Spec::Find(std::string_view name) const {
  for (int i = 0; i < size(); ++i) {
    if (leaves_[i].name == name) return i;
  }
  return -1;
}

}  // namespace menger
