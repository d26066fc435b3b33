#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "menger/tensor/slab.h"

namespace menger {

// Where encoded rows go, dense. A part that is null is left out.
struct EncodedRows {
  std::byte* image = nullptr;  // uint8 [rows, frame_stack x frames, height, width].
  float* numbers = nullptr;    // [rows, frame_stack x numbers of an observation].
};

// Turns the observation leaves of a slab into what a network is given: an image, numbers, or both.
//
// Number leaves and flags are concatenated as float32 in the order of the spec, Discrete and
// MultiDiscrete ones as one-hot codes; the leaf `action_mask` and lengths are left out. For a
// network that reads frames, the only image (uint8 [frames, height, width]) stays uint8, and all
// other leaves are the numbers beside it; for any other network its pixels are numbers too, taken
// as 0 .. 1. Immutable; any thread.
//
// A stack of frames is the last few encodings of an episode one after the other, the newest last,
// with zeros for what was before its start (as Dopamine and Stable-Baselines3 do): images in one
// stack, numbers in one of their own. The slab holds each frame once; stacks are put together here,
// from the rows before (history() of them).
class ObservationEncoder {
 public:
  // Throws InvalidArgument when there is nothing to encode, when a network that reads frames is
  // given several images, and when without an image frames of something else than one float32 leaf
  // are to be stacked.
  explicit ObservationEncoder(const Spec& observation, int frame_stack = 1,
                              bool reads_frames = true);

  int history() const { return frame_stack_ - 1; }

  // What the network reads: float32 [frame_stack x numbers], or uint8 images
  // [frame_stack x frames, height, width], and then so many numbers beside each.
  const LeafSpec& encoded() const { return encoded_; }
  int elements() const { return static_cast<int>(encoded_.elements()); }
  int vector_elements() const { return has_image() ? numbers() : 0; }

  bool has_image() const { return image_leaf_ >= 0; }
  std::size_t image_bytes() const { return has_image() ? encoded_.bytes() : 0; }
  int numbers() const { return frame_numbers_ * frame_stack_; }  // Of a row, stacked.

  // The leaf whose memory already is the image, or the numbers: the slab can be given to the
  // network as it stands. -1: there is none.
  int image_in_place() const { return frame_stack_ == 1 ? image_leaf_ : -1; }
  int numbers_in_place() const { return frame_stack_ == 1 ? number_leaf_ : -1; }

  int image_leaf() const { return image_leaf_; }  // -1: no leaf is read as an image.

  // What each number of the observation, or of its codes, is multiplied by in the encoding, of one
  // frame; empty where that is 1 for all.
  std::vector<float> scales() const;

  // Whether a leaf is part of the encoding.
  bool Reads(int leaf) const;

  // Index of the action mask leaf, or -1.
  int mask_leaf() const { return mask_leaf_; }

  // Encodes `count` neighbouring positions of a row >= 0.
  void Encode(const Slab& slab, int row, int position, int count, const EncodedRows& out) const;

  // Encodes one final observation.
  void EncodeFinal(const Slab& slab, int slot, const EncodedRows& out) const;

 private:
  struct Part {
    int leaf = 0;
    int offset = 0;    // In the numbers of an observation.
    int elements = 0;  // Encoded.
  };
  void AddPart(int leaf);
  void TakeImage();
  void EncodeLeaf(const LeafSpec& leaf, const std::byte* item, float* out) const;
  void EncodeImages(const Slab& slab, int row, int position, int count, std::byte* out) const;
  void EncodeNumbers(const Slab& slab, int row, int position, int count, float* out) const;
  // One observation, not stacked.
  void EncodeOne(const Slab& slab, int row, int position, float* out) const;
  // The newest `count` frames of a stack: of `row` and the rows before it, back to the start of its
  // episode. `out` begins at the oldest of them.
  void StackImages(const Slab& slab, int row, int position, int count, std::byte* out) const;
  void StackNumbers(const Slab& slab, int row, int position, int count, float* out) const;

  Spec observation_;
  int frame_stack_ = 1;
  std::size_t frame_bytes_ = 0;  // Of one image of a stack.
  int frame_numbers_ = 0;        // Of one observation.
  LeafSpec encoded_;
  std::vector<Part> parts_;  // What makes up the numbers.
  int image_leaf_ = -1;
  int number_leaf_ = -1;  // The only part of the numbers, as it lies in memory.
  int mask_leaf_ = -1;
};

// x <- clamp(x * scale + shift, -clip, clip) for every row of [rows, scale.size()].
void Normalise(std::span<float> rows, std::span<const float> scale, std::span<const float> shift,
               float clip);

}  // namespace menger
