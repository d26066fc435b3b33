#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/tensor/slab.h"

namespace menger {

// Turns the observation leaves of a slab into what a network is given.
//
// Number leaves and flags are concatenated as float32 in the order of the spec, Discrete and
// MultiDiscrete ones as one-hot codes; the leaf `action_mask` and lengths are left out. For a
// network that reads frames, a single image (uint8 [frames, height, width]) stays uint8; for any
// other its pixels are numbers too, taken as 0 .. 1, also beside other leaves. Immutable; any
// thread.
//
// A stack of frames is the last few encodings of an episode one after the other, the newest last,
// with zeros for what was before its start (as Dopamine and Stable-Baselines3 do). The slab holds
// each frame once; stacks are put together here, from the rows before (history() of them).
class ObservationEncoder {
 public:
  // Throws InvalidArgument when there is nothing to encode, a network that reads frames is given
  // an image beside other leaves, or frames of something else than pixels for such a network or one
  // float32 leaf are to be stacked.
  explicit ObservationEncoder(const Spec& observation, int frame_stack = 1,
                              bool reads_frames = true);

  int history() const { return frame_stack_ - 1; }

  // The network's input: float32 [frame_stack x elements], or uint8 images
  // [frame_stack x frames, height, width].
  const LeafSpec& encoded() const { return encoded_; }
  int elements() const { return static_cast<int>(encoded_.elements()); }
  std::size_t bytes() const { return encoded_.bytes(); }
  bool is_image() const { return encoded_.dtype == DataType::kUint8; }

  // True when a leaf's memory already is the encoding: the slab can be given to the network as it
  // stands.
  bool identity() const { return identity_leaf_ >= 0 && frame_stack_ == 1; }
  int identity_leaf() const { return identity_leaf_; }

  // What each number of the observation, or of its codes, is multiplied by in the encoding, of one
  // frame; empty where that is 1 for all.
  std::vector<float> scales() const;

  // Whether a leaf is part of the encoding.
  bool Reads(int leaf) const;

  // Index of the action mask leaf, or -1.
  int mask_leaf() const { return mask_leaf_; }

  // Encodes `count` neighbouring positions of a row >= 0 into `out` [count, encoded].
  void Encode(const Slab& slab, int row, int position, int count, std::byte* out) const;

  // Encodes one final observation.
  void EncodeFinal(const Slab& slab, int slot, std::byte* out) const;

 private:
  struct Part {
    int leaf = 0;
    int offset = 0;    // In encoded elements.
    int elements = 0;  // Encoded.
  };
  void EncodeLeaf(const LeafSpec& leaf, const std::byte* item, float* out) const;
  void StackFrames(const Slab& slab, int row, int position, int count, std::byte* out) const;

  Spec observation_;
  int frame_stack_ = 1;
  std::size_t frame_bytes_ = 0;  // Of one observation of a stack.
  LeafSpec encoded_;
  std::vector<Part> parts_;
  int identity_leaf_ = -1;
  int mask_leaf_ = -1;
};

// x <- clamp(x * scale + shift, -clip, clip) for every row of [rows, scale.size()].
void Normalise(std::span<float> rows, std::span<const float> scale, std::span<const float> shift,
               float clip);

}  // namespace menger
