#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace menger {

// How an axis of an image shrinks when each new pixel is the mean of the area it covers: OpenCV's
// INTER_AREA for 8-bit images, of which every rounding is kept.
//
// A new pixel has a run of neighbouring source pixels, the first and the last of which may count in
// part. Weights are given twice: as fractions of `denominator`, which are exact, and as the
// float32 numbers that OpenCV uses. Both lists have `taps` a new pixel; what is not needed weighs
// 0.
struct AreaWeights {
  // Throws InvalidArgument unless 0 < to <= from.
  AreaWeights(int from, int to);

  int from;
  int to;
  int taps = 0;                    // Source pixels of a new one, at most.
  int denominator = 0;             // Of the exact weights: those of a new pixel sum to it.
  std::vector<int> first;          // Of each new pixel: its first source pixel.
  std::vector<int> exact;          // [to][taps]
  std::vector<float> approximate;  // [to][taps]
};

// A pixel of the new image as OpenCV rounds it, from the source rows that it covers, each from
// column 0 on.
std::uint8_t ShrinkPixel(const AreaWeights& rows, const AreaWeights& columns, int row, int column,
                         std::span<const std::uint8_t* const> source_rows);

}  // namespace menger
