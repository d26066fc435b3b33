#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "menger/tensor/data_type.h"

namespace menger {

// Sizes of each dimension of one element of a batch; empty for a scalar.
using Shape = std::vector<std::int64_t>;

std::int64_t ElementCount(const Shape& shape);
std::string ToString(const Shape& shape);  // "(4,)", "()", "(84, 84)" as NumPy prints it.

// What the values of a leaf mean, after Gymnasium's spaces.
enum class Space : std::uint8_t {
  kBox,            // Real numbers (or pixels) between `low` and `high`.
  kDiscrete,       // One integer in [0, counts[0]).
  kMultiDiscrete,  // Element i is an integer in [0, counts[i]).
  kMask,           // Flags, 0 or 1.
  kLength,         // How many entries of another leaf's first dimension are in use.
};

// How long a value stays the same, so that what does not change is stored once.
enum class Lifetime : std::uint8_t { kStep, kEpisode, kEnvironment };

// One named array, described for one environment and one step (no batch dimension).
//
// Names are paths: the only observation of a plain Box environment is "observation", the entry
// `position` of a Dict is "observation/position". Bounds hold one value for all elements or one for
// each; they may be infinite.
struct LeafSpec {
  std::string name;
  DataType dtype = DataType::kFloat32;
  Shape shape;  // The maximum where `length_leaf` is set.
  Space space = Space::kBox;
  std::vector<double> low;           // kBox.
  std::vector<double> high;          // kBox.
  std::vector<std::int64_t> counts;  // kDiscrete: {n}. kMultiDiscrete: one an element.
  std::string length_leaf;  // Optional: the kLength leaf that says how much of dimension 0 is used.
  Lifetime lifetime = Lifetime::kStep;

  std::int64_t elements() const { return ElementCount(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * SizeOf(dtype); }

  static LeafSpec Box(std::string name, DataType dtype, Shape shape, std::vector<double> low,
                      std::vector<double> high);
  static LeafSpec Discrete(std::string name, std::int64_t count);  // int64 scalar, as Gymnasium's.
  static LeafSpec MultiDiscrete(std::string name, std::vector<std::int64_t> counts);
  static LeafSpec Mask(std::string name, std::int64_t size);  // uint8 [size], 1 = allowed.
  static LeafSpec Scalar(std::string name, DataType dtype);   // An unbounded box of shape ().
};

// A tree of leaves, flattened in a fixed order. Value type; immutable once it describes a slab.
class Spec {
 public:
  Spec() = default;
  explicit Spec(
      std::vector<LeafSpec> leaves);  // Throws InvalidArgument on a repeated or empty name.

  const std::vector<LeafSpec>& leaves() const { return leaves_; }
  int size() const { return static_cast<int>(leaves_.size()); }
  const LeafSpec& operator[](int index) const { return leaves_[index]; }

  // Index of the leaf, or -1.
  int Find(std::string_view name) const;

 private:
  std::vector<LeafSpec> leaves_;
};

// The standard leaf of an observation that says which actions are allowed (uint8, one flag an
// action; 1 = allowed).
inline constexpr std::string_view kActionMask = "action_mask";

}  // namespace menger
