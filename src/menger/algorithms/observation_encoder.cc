#include "menger/algorithms/observation_encoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr float kWhite = 255;

bool IsCode(const LeafSpec& leaf) {
  return leaf.space == Space::kDiscrete || leaf.space == Space::kMultiDiscrete;
}

bool IsImage(const LeafSpec& leaf) {
  return leaf.space == Space::kBox && leaf.dtype == DataType::kUint8 && leaf.shape.size() == 3;
}

template <typename T>
void Convert(const std::byte* item, std::int64_t elements, float* out) {
  const T* const values = reinterpret_cast<const T*>(item);
  for (std::int64_t i = 0; i < elements; ++i) out[i] = static_cast<float>(values[i]);
}

}  // namespace

ObservationEncoder::ObservationEncoder(const Spec& observation, int frame_stack, bool reads_frames)
    : observation_(observation), frame_stack_(frame_stack) {
  int elements = 0;
  for (int i = 0; i < observation.size(); ++i) {
    const LeafSpec& leaf = observation[i];
    if (leaf.name == kActionMask) {
      mask_leaf_ = i;
      continue;
    }
    if (leaf.space == Space::kLength) continue;
    Part part{.leaf = i, .offset = elements};
    part.elements = static_cast<int>(leaf.elements());
    if (IsCode(leaf)) {
      part.elements = 0;
      for (const std::int64_t count : leaf.counts) part.elements += static_cast<int>(count);
    }
    elements += part.elements;
    parts_.push_back(part);
  }
  if (parts_.empty())
    throw InvalidArgument("the observation has no leaf that a network could read");
  const LeafSpec& first = observation[parts_[0].leaf];
  const bool frames = reads_frames && parts_.size() == 1 && IsImage(first);
  if (parts_.size() == 1 && (frames || (first.dtype == DataType::kFloat32 && !IsCode(first)))) {
    identity_leaf_ = parts_[0].leaf;
  }
  frame_bytes_ = first.bytes();
  if (frames) {
    encoded_ = first;
    encoded_.shape[0] *= frame_stack;
    encoded_.low = {0};
    encoded_.high = {255};
    return;
  }
  if (frame_stack > 1 && identity_leaf_ < 0) {
    throw InvalidArgument(
        "transforms.frame_stack = {}, but the observation is neither pixels for a convolutional "
        "network nor one float32 leaf; set it to 1",
        frame_stack);
  }
  for (const Part& part : parts_) {
    if (reads_frames && IsImage(observation[part.leaf])) {
      throw InvalidArgument(
          "leaf '{}' is an image beside other leaves, of which a convolutional network reads "
          "nothing; network.kind = \"mlp\" reads all of them",
          observation[part.leaf].name);
    }
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  encoded_ = LeafSpec::Box("encoded", DataType::kFloat32, {elements * frame_stack}, {-kInfinity},
                           {kInfinity});
}

bool ObservationEncoder::Reads(int leaf) const {
  return std::ranges::any_of(parts_, [leaf](const Part& part) { return part.leaf == leaf; });
}

std::vector<float> ObservationEncoder::scales() const {
  std::vector<float> scales;
  if (identity_leaf_ >= 0) return scales;
  bool any = false;
  for (const Part& part : parts_) {
    const bool image = IsImage(observation_[part.leaf]);
    any |= image;
    scales.insert(scales.end(), part.elements, image ? 1 / kWhite : 1.0F);
  }
  return any ? scales : std::vector<float>();
}

void ObservationEncoder::EncodeLeaf(const LeafSpec& leaf, const std::byte* item, float* out) const {
  if (IsCode(leaf)) {
    const auto* const values = reinterpret_cast<const std::int64_t*>(item);
    for (std::size_t i = 0; i < leaf.counts.size(); ++i) {
      std::fill(out, out + leaf.counts[i], 0.0F);
      out[values[i]] = 1.0F;
      out += leaf.counts[i];
    }
    return;
  }
  switch (leaf.dtype) {
    case DataType::kUint8:
      Convert<std::uint8_t>(item, leaf.elements(), out);
      if (IsImage(leaf)) {
        for (std::int64_t i = 0; i < leaf.elements(); ++i) out[i] /= kWhite;
      }
      return;
    case DataType::kInt32:
      return Convert<std::int32_t>(item, leaf.elements(), out);
    case DataType::kInt64:
      return Convert<std::int64_t>(item, leaf.elements(), out);
    case DataType::kFloat32:
      std::memcpy(out, item, leaf.bytes());
      return;
    case DataType::kFloat64:
      return Convert<double>(item, leaf.elements(), out);
  }
}

// Writes the newest `count` frames of a stack: `row` and the rows before it, back to the start of
// its episode. `out` begins at the oldest of them.
void ObservationEncoder::StackFrames(const Slab& slab, int row, int position, int count,
                                     std::byte* out) const {
  int frame = count - 1;
  for (; frame >= 0; --frame, --row) {
    std::memcpy(out + frame * frame_bytes_, slab.observation(identity_leaf_, row, position),
                frame_bytes_);
    if (slab.is_first(row)[position] != 0) break;
  }
  if (frame > 0) std::memset(out, 0, frame * frame_bytes_);
}

void ObservationEncoder::Encode(const Slab& slab, int row, int position, int count,
                                std::byte* out) const {
  if (identity()) {
    std::memcpy(out, slab.observation(identity_leaf_, row, position), count * bytes());
    return;
  }
  if (frame_stack_ > 1) {
    for (int i = 0; i < count; ++i) {
      StackFrames(slab, row, position + i, frame_stack_, out + i * bytes());
    }
    return;
  }
  auto* const rows = reinterpret_cast<float*>(out);
  for (const Part& part : parts_) {
    const LeafSpec& leaf = observation_[part.leaf];
    for (int i = 0; i < count; ++i) {
      EncodeLeaf(leaf, slab.observation(part.leaf, row, position + i),
                 rows + i * elements() + part.offset);
    }
  }
}

void ObservationEncoder::EncodeFinal(const Slab& slab, int slot, std::byte* out) const {
  if (identity()) {
    std::memcpy(out, slab.final_observation(identity_leaf_, slot), bytes());
    return;
  }
  if (frame_stack_ > 1) {
    const int row = slot / slab.positions();
    const int position = slot % slab.positions();
    StackFrames(slab, row, position, frame_stack_ - 1, out);
    std::memcpy(out + (frame_stack_ - 1) * frame_bytes_,
                slab.final_observation(identity_leaf_, slot), frame_bytes_);
    return;
  }
  for (const Part& part : parts_) {
    EncodeLeaf(observation_[part.leaf], slab.final_observation(part.leaf, slot),
               reinterpret_cast<float*>(out) + part.offset);
  }
}

void Normalise(std::span<float> rows, std::span<const float> scale, std::span<const float> shift,
               float clip) {
  const std::size_t elements = scale.size();
  for (std::size_t row = 0; row < rows.size(); row += elements) {
    for (std::size_t i = 0; i < elements; ++i) {
      rows[row + i] = std::clamp(rows[row + i] * scale[i] + shift[i], -clip, clip);
    }
  }
}

}  // namespace menger
