#include "menger/environments/atari/area_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "menger/base/error.h"

namespace menger {
namespace {

// The steps are OpenCV's, in its order: each rounds.
std::vector<float> ApproximateWeights(int from, int to, int pixel, int first, int taps) {
  const double scale = static_cast<double>(from) / to;
  const double low = pixel * scale;
  const double high = low + scale;
  const double width = std::min(scale, from - low);
  const int last_whole = std::min(static_cast<int>(std::floor(high)), from - 1);
  const int first_whole = std::min(static_cast<int>(std::ceil(low)), last_whole);
  std::vector<float> weights(taps, 0.0F);
  const auto at = [&](int source) -> float& {
    return weights[std::clamp(source - first, 0, taps - 1)];
  };
  if (first_whole - low > 1e-3) {
    at(first_whole - 1) = static_cast<float>((first_whole - low) / width);
  }
  for (int source = first_whole; source < last_whole; ++source) {
    at(source) = static_cast<float>(1.0 / width);
  }
  if (high - last_whole > 1e-3) {
    at(last_whole) = static_cast<float>(std::min(std::min(high - last_whole, 1.0), width) / width);
  }
  return weights;
}

}  // namespace

AreaWeights::AreaWeights(int from_size, int to_size) : from(from_size), to(to_size) {
  if (to < 1 || to > from) {
    throw InvalidArgument("{} pixels cannot be shrunk to {}: choose 1 to {}", from, to, from);
  }
  const int common = std::gcd(from, to);
  denominator = from / common;
  const int unit = to / common;  // A source pixel is so many units wide, a new one `denominator`.
  for (int pixel = 0; pixel < to; ++pixel) {
    first.push_back(pixel * denominator / unit);
    const int last = ((pixel + 1) * denominator - 1) / unit;
    taps = std::max(taps, last - first.back() + 1);
  }
  for (int pixel = 0; pixel < to; ++pixel) {
    for (int tap = 0; tap < taps; ++tap) {
      const int low = std::max(pixel * denominator, (first[pixel] + tap) * unit);
      const int high = std::min((pixel + 1) * denominator, (first[pixel] + tap + 1) * unit);
      exact.push_back(std::max(0, high - low));
    }
    const auto weights = ApproximateWeights(from, to, pixel, first[pixel], taps);
    approximate.insert(approximate.end(), weights.begin(), weights.end());
  }
}

std::uint8_t ShrinkPixel(const AreaWeights& rows, const AreaWeights& columns, int row, int column,
                         std::span<const std::uint8_t* const> source_rows) {
  const int begin = columns.first[column];
  const int width = std::min(columns.taps, columns.from - begin);
  const int height = std::min(rows.taps, rows.from - rows.first[row]);
  // Where both sizes are divided by whole numbers OpenCV sums integers, and halves 2 x 2 by itself.
  if (rows.denominator == rows.taps && columns.denominator == columns.taps) {
    const int area = rows.taps * columns.taps;
    int sum = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) sum += source_rows[y][begin + x];
    }
    if (rows.taps == 2 && columns.taps == 2) return static_cast<std::uint8_t>((sum + 2) >> 2);
    const float mean = static_cast<float>(sum) * (1.0F / static_cast<float>(area));
    return static_cast<std::uint8_t>(std::lrintf(mean));
  }
  float sum = 0;
  for (int y = 0; y < height; ++y) {
    float line = 0;
    for (int x = 0; x < width; ++x) {
      line += static_cast<float>(source_rows[y][begin + x]) *
              columns.approximate[column * columns.taps + x];
    }
    sum += rows.approximate[row * rows.taps + y] * line;
  }
  return static_cast<std::uint8_t>(std::clamp(std::lrintf(sum), 0L, 255L));
}

}  // namespace menger
