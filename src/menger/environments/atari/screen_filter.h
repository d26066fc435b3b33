#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "menger/environments/atari/area_weights.h"

namespace menger {

// What the bytes of an emulator's screen are: indices into a palette, row by row.
struct ScreenFormat {
  int height = 210;
  int width = 160;
  std::array<std::uint8_t, 256> grey{};  // The brightness of each index.
};

// Turns screens into the frames that learners see: brightness, the brighter of the last two frames
// for each pixel (sprites may be drawn in every other frame only), and a smaller picture whose
// pixels are means of areas. Equal, bit for bit, to ale_py's greyscale, NumPy's maximum and
// OpenCV's INTER_AREA.
//
// The means are computed in integers where the sizes allow it (84 x 84 and 104 x 80 among them),
// row after row while they are in the first-level cache; only where a mean lies exactly between two
// numbers OpenCV's rounded float32 sum decides, and is repeated. Then it takes a few microseconds,
// else tens. One thread at a time.
class ScreenFilter {
 public:
  // Throws InvalidArgument where the frame would be larger than the screen.
  ScreenFilter(const ScreenFormat& format, int height, int width);

  // `previous` may be null: then `last` stands alone. Writes height * width bytes.
  void Apply(const std::uint8_t* last, const std::uint8_t* previous, std::uint8_t* frame);

  bool is_fast() const { return is_fast_; }

 private:
  // Sixteen neighbouring pixels of a frame, two source pixels each: the first eight from the 16
  // source bytes at one offset, the others from those at another.
  struct Block {
    std::array<int, 2> offset;
    alignas(32) std::array<std::int8_t, 32> choose;  // Which byte; -1 for none.
    alignas(32) std::array<std::int8_t, 32> weights;
  };

  bool PrepareBlocks();
  bool PrepareDivision();
  bool ApplyFast(const std::uint8_t* last, const std::uint8_t* previous, std::uint8_t* frame);
  void ApplySlowly(const std::uint8_t* last, const std::uint8_t* previous, std::uint8_t* frame);
  void ShrinkLine(const std::uint8_t* line, std::uint16_t* shrunk) const;
  void FinishRow(int row, std::uint8_t* frame);

  std::uint8_t* line(int row) { return lines_.data() + (row & ring_) * line_bytes_; }
  std::uint16_t* shrunk(int row) { return shrunk_.data() + (row & ring_) * shrunk_items_; }

  const ScreenFormat format_;
  const AreaWeights rows_;
  const AreaWeights columns_;
  const int line_bytes_;    // A row of the screen, and room for a vector to reach beyond it.
  const int shrunk_items_;  // A row of the frame, in whole vectors.
  const int ring_;          // Source rows are kept in a ring of ring_ + 1.
  const bool has_vbmi_;     // The processor looks up 64 bytes at once.

  bool is_fast_ = false;
  std::array<std::uint8_t, 128> even_grey_{};  // A television shows even indices only.
  int pairs_ = 0;                              // Of source pixels of a new one.
  std::vector<Block> blocks_;                  // [shrunk_items_ / 16][pairs_]
  int shift_ = 0;  // n / area is (n >> shift_) * factor_ >> (16 + more_shift_).
  int more_shift_ = 0;
  std::uint16_t factor_ = 0;

  std::vector<std::uint8_t> lines_;    // Brightness of source rows.
  std::vector<std::uint16_t> shrunk_;  // Their sums over the columns of each new pixel.
  std::vector<std::uint8_t> finished_;
};

}  // namespace menger
