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
  if (reads_frames) TakeImage();
  for (int i = 0; i < observation.size(); ++i) {
    const LeafSpec& leaf = observation[i];
    if (leaf.name == kActionMask) {
      mask_leaf_ = i;
    } else if (leaf.space != Space::kLength && i != image_leaf_) {
      AddPart(i);
    }
  }
  if (parts_.empty() && !has_image())
    throw InvalidArgument("the observation has no leaf that a network could read");
  if (parts_.size() == 1) {
    const LeafSpec& only = observation[parts_[0].leaf];
    if (only.dtype == DataType::kFloat32 && !IsCode(only)) number_leaf_ = parts_[0].leaf;
  }
  if (has_image()) {
    encoded_ = observation[image_leaf_];
    frame_bytes_ = encoded_.bytes();
    encoded_.shape[0] *= frame_stack;
    encoded_.low = {0};
    encoded_.high = {255};
    return;
  }
  if (frame_stack > 1 && number_leaf_ < 0) {
    throw InvalidArgument(
        "transforms.frame_stack = {}, but the observation is neither pixels for a convolutional "
        "network nor one float32 leaf; set it to 1",
        frame_stack);
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  encoded_ = LeafSpec::Box("encoded", DataType::kFloat32, {numbers()}, {-kInfinity}, {kInfinity});
}

// Of a network that reads frames.
void ObservationEncoder::TakeImage() {
  for (int i = 0; i < observation_.size(); ++i) {
    if (!IsImage(observation_[i])) continue;
    if (has_image()) {
      throw InvalidArgument(
          "leaves '{}' and '{}' are images, and a convolutional network reads one; network.kind = "
          "\"mlp\" reads all of them",
          observation_[image_leaf_].name, observation_[i].name);
    }
    image_leaf_ = i;
  }
}

void ObservationEncoder::AddPart(int leaf) {
  const LeafSpec& spec = observation_[leaf];
  Part part{.leaf = leaf, .offset = frame_numbers_, .elements = static_cast<int>(spec.elements())};
  if (IsCode(spec)) {
    part.elements = 0;
    for (const std::int64_t count : spec.counts) part.elements += static_cast<int>(count);
  }
  frame_numbers_ += part.elements;
  parts_.push_back(part);
}

bool ObservationEncoder::Reads(int leaf) const {
  if (leaf == image_leaf_) return true;
  return std::ranges::any_of(parts_, [leaf](const Part& part) { return part.leaf == leaf; });
}

std::vector<float> ObservationEncoder::scales() const {
  std::vector<float> scales;
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

void ObservationEncoder::EncodeOne(const Slab& slab, int row, int position, float* out) const {
  for (const Part& part : parts_) {
    EncodeLeaf(observation_[part.leaf], slab.observation(part.leaf, row, position),
               out + part.offset);
  }
}

void ObservationEncoder::StackImages(const Slab& slab, int row, int position, int count,
                                     std::byte* out) const {
  int frame = count - 1;
  for (; frame >= 0; --frame, --row) {
    std::memcpy(out + frame * frame_bytes_, slab.observation(image_leaf_, row, position),
                frame_bytes_);
    if (slab.is_first(row)[position] != 0) break;
  }
  if (frame > 0) std::memset(out, 0, frame * frame_bytes_);
}

void ObservationEncoder::StackNumbers(const Slab& slab, int row, int position, int count,
                                      float* out) const {
  int frame = count - 1;
  for (; frame >= 0; --frame, --row) {
    EncodeOne(slab, row, position, out + static_cast<std::ptrdiff_t>(frame) * frame_numbers_);
    if (slab.is_first(row)[position] != 0) break;
  }
  if (frame > 0) std::fill_n(out, static_cast<std::ptrdiff_t>(frame) * frame_numbers_, 0.0F);
}

void ObservationEncoder::Encode(const Slab& slab, int row, int position, int count,
                                const EncodedRows& out) const {
  if (out.image != nullptr && has_image()) EncodeImages(slab, row, position, count, out.image);
  if (out.numbers != nullptr && !parts_.empty()) {
    EncodeNumbers(slab, row, position, count, out.numbers);
  }
}

void ObservationEncoder::EncodeImages(const Slab& slab, int row, int position, int count,
                                      std::byte* out) const {
  if (frame_stack_ == 1) {
    std::memcpy(out, slab.observation(image_leaf_, row, position), count * frame_bytes_);
    return;
  }
  for (int i = 0; i < count; ++i) {
    StackImages(slab, row, position + i, frame_stack_, out + i * image_bytes());
  }
}

void ObservationEncoder::EncodeNumbers(const Slab& slab, int row, int position, int count,
                                       float* out) const {
  if (const int leaf = numbers_in_place(); leaf >= 0) {
    std::memcpy(out, slab.observation(leaf, row, position),
                sizeof(float) * static_cast<std::size_t>(count) * frame_numbers_);
    return;
  }
  for (int i = 0; i < count; ++i, out += numbers()) {
    if (frame_stack_ > 1) {
      StackNumbers(slab, row, position + i, frame_stack_, out);
    } else {
      EncodeOne(slab, row, position + i, out);
    }
  }
}

void ObservationEncoder::EncodeFinal(const Slab& slab, int slot, const EncodedRows& out) const {
  const int row = slot / slab.positions();
  const int position = slot % slab.positions();
  const int before = frame_stack_ - 1;
  if (out.image != nullptr && has_image()) {
    if (before > 0) StackImages(slab, row, position, before, out.image);
    std::memcpy(out.image + before * frame_bytes_, slab.final_observation(image_leaf_, slot),
                frame_bytes_);
  }
  if (out.numbers == nullptr) return;
  if (before > 0) StackNumbers(slab, row, position, before, out.numbers);
  float* const newest = out.numbers + static_cast<std::ptrdiff_t>(before) * frame_numbers_;
  for (const Part& part : parts_) {
    EncodeLeaf(observation_[part.leaf], slab.final_observation(part.leaf, slot),
               newest + part.offset);
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
