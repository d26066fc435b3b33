#include "menger/environments/atari/screen_filter.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kVector = 16;    // Pixels of a frame that are made at once.
constexpr int kMostRows = 16;  // Of the screen, for one of a frame.

int RoundUp(int value, int unit) { return (value + unit - 1) / unit * unit; }

__m256i Load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

// Bytes of a table of 128, by index: eight tables of 16. Adding 0x70 with saturation leaves an
// index below 16 its low half and sets the highest bit of all others, for which a shuffle gives 0.
__m256i LookUp(const std::uint8_t* table, __m256i index) {
  __m256i found = _mm256_setzero_si256();
  for (int part = 0; part < 8; ++part) {
    const __m256i entries = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * part)));
    const __m256i from_here =
        _mm256_xor_si256(index, _mm256_set1_epi8(static_cast<char>(16 * part)));
    const __m256i low = _mm256_adds_epu8(from_here, _mm256_set1_epi8(0x70));
    found = _mm256_or_si256(found, _mm256_shuffle_epi8(entries, low));
  }
  return found;
}

__m256i HalfOf(__m256i index) {
  return _mm256_and_si256(_mm256_srli_epi16(index, 1), _mm256_set1_epi8(0x7f));
}

// Writes the brightness of `width` pixels, and up to 31 more; false where an index is odd. Reads no
// further than `width` bytes.
bool Brighten(const std::uint8_t* table, const std::uint8_t* last, const std::uint8_t* previous,
              int width, std::uint8_t* line) {
  __m256i seen = _mm256_setzero_si256();
  for (int x = 0; x < width; x += 32) {
    const __m256i a = Load(last + x);
    const __m256i b = Load(previous + x);
    seen = _mm256_or_si256(seen, _mm256_or_si256(a, b));
    __m256i grey = LookUp(table, HalfOf(a));
    // Two frames in a row are nearly the same picture.
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)) != -1) {
      grey = _mm256_max_epu8(grey, LookUp(table, HalfOf(b)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(line + x), grey);
  }
  return _mm256_testz_si256(seen, _mm256_set1_epi8(1)) != 0;
}

// The same with one look-up instruction for 64 pixels.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) bool BrightenVbmi(
    const std::uint8_t* table, const std::uint8_t* last, const std::uint8_t* previous, int width,
    std::uint8_t* line) {
  const __m512i low = _mm512_loadu_si512(table);
  const __m512i high = _mm512_loadu_si512(table + 64);
  __m512i seen = _mm512_setzero_si512();
  for (int x = 0; x < width; x += 64) {
    const __mmask64 there = width - x >= 64 ? ~__mmask64{0} : (__mmask64{1} << (width - x)) - 1;
    const __m512i a = _mm512_maskz_loadu_epi8(there, last + x);
    const __m512i b = _mm512_maskz_loadu_epi8(there, previous + x);
    seen = _mm512_or_si512(seen, _mm512_or_si512(a, b));
    // The look-up ignores the highest bit, which a shift of 16-bit numbers brings in.
    const __m512i grey =
        _mm512_max_epu8(_mm512_permutex2var_epi8(low, _mm512_srli_epi16(a, 1), high),
                        _mm512_permutex2var_epi8(low, _mm512_srli_epi16(b, 1), high));
    _mm512_mask_storeu_epi8(line + x, there, grey);
  }
  return _mm512_test_epi8_mask(seen, _mm512_set1_epi8(1)) == 0;
}

}  // namespace

ScreenFilter::ScreenFilter(const ScreenFormat& format, int height, int width)
    : format_(format),
      rows_(format.height, height),
      columns_(format.width, width),
      line_bytes_(RoundUp(format.width, 32) + 32),
      shrunk_items_(RoundUp(width, kVector)),
      ring_(static_cast<int>(std::bit_ceil(static_cast<unsigned>(rows_.taps + 1))) - 1),
      has_vbmi_(__builtin_cpu_supports("avx512vbmi") != 0 &&
                __builtin_cpu_supports("avx512bw") != 0),
      finished_(shrunk_items_) {
  for (int i = 0; i < 128; ++i) even_grey_[i] = format.grey[2 * i];
  is_fast_ =
      format.width % 32 == 0 && rows_.taps <= kMostRows && PrepareBlocks() && PrepareDivision();
  lines_.resize(static_cast<std::size_t>(ring_ + 1) * line_bytes_);
  shrunk_.resize(static_cast<std::size_t>(ring_ + 1) * shrunk_items_);
}

// False where weights do not fit into bytes, or eight new pixels need more than 16 old ones.
bool ScreenFilter::PrepareBlocks() {
  pairs_ = (columns_.taps + 1) / 2;
  for (int block = 0; block < shrunk_items_ / kVector; ++block) {
    for (int pair = 0; pair < pairs_; ++pair) {
      Block& to = blocks_.emplace_back();
      to.choose.fill(-1);
      to.weights.fill(0);
      for (int i = 0; i < kVector; ++i) {
        const int pixel = kVector * block + i;
        if (pixel >= columns_.to) break;
        const int half = i / 8;
        if (i % 8 == 0) to.offset[half] = columns_.first[pixel] + 2 * pair;
        for (int k = 0; k < 2; ++k) {
          const int tap = 2 * pair + k;
          const int weight = tap < columns_.taps ? columns_.exact[pixel * columns_.taps + tap] : 0;
          if (weight == 0) continue;
          const int byte = columns_.first[pixel] + tap - to.offset[half];
          if (weight > 127 || byte > 15) return false;
          to.choose[2 * i + k] = static_cast<std::int8_t>(byte);
          to.weights[2 * i + k] = static_cast<std::int8_t>(weight);
        }
      }
    }
  }
  return columns_.denominator * 255 <= 32767;  // Sums of products are signed 16-bit numbers.
}

// False where sums of areas do not fit into 16 bits, or no factor divides all of them rightly.
bool ScreenFilter::PrepareDivision() {
  const int area = rows_.denominator * columns_.denominator;
  const int largest = 255 * area + area / 2;
  if (area < 2 || largest > 65535) return false;
  shift_ = std::countr_zero(static_cast<unsigned>(area));
  if (area >> shift_ == 1) --shift_;
  const int divisor = area >> shift_;
  for (more_shift_ = 0; more_shift_ < 16; ++more_shift_) {
    const int factor = ((1 << (16 + more_shift_)) + divisor - 1) / divisor;
    if (factor > 65535) continue;
    bool right = true;
    for (int n = 0; n <= largest >> shift_ && right; ++n) {
      right = static_cast<int>((std::int64_t{n} * factor) >> (16 + more_shift_)) == n / divisor;
    }
    factor_ = static_cast<std::uint16_t>(factor);
    if (right) return true;
  }
  return false;
}

void ScreenFilter::Apply(const std::uint8_t* last, const std::uint8_t* previous,
                         std::uint8_t* frame) {
  if (previous == nullptr) previous = last;
  if (!is_fast_ || !ApplyFast(last, previous, frame)) ApplySlowly(last, previous, frame);
}

// False where an index is odd: then nothing is said of the frame.
bool ScreenFilter::ApplyFast(const std::uint8_t* last, const std::uint8_t* previous,
                             std::uint8_t* frame) {
  int next = 0;  // Source row.
  for (int row = 0; row < rows_.to; ++row) {
    const int end = std::min(rows_.first[row] + rows_.taps, rows_.from);
    for (; next < end; ++next) {
      const int at = next * format_.width;
      const bool even = (has_vbmi_ ? BrightenVbmi : Brighten)(
          even_grey_.data(), last + at, previous + at, format_.width, line(next));
      if (!even) [[unlikely]]
        return false;
      ShrinkLine(line(next), shrunk(next));
    }
    FinishRow(row, frame + row * columns_.to);
  }
  return true;
}

void ScreenFilter::ShrinkLine(const std::uint8_t* line, std::uint16_t* shrunk) const {
  const Block* block = blocks_.data();
  for (int x = 0; x < shrunk_items_; x += kVector) {
    __m256i sum = _mm256_setzero_si256();
    for (int pair = 0; pair < pairs_; ++pair, ++block) {
      const __m256i bytes =
          _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(line + block->offset[1]),
                              reinterpret_cast<const __m128i*>(line + block->offset[0]));
      const __m256i chosen = _mm256_shuffle_epi8(bytes, Load(block->choose.data()));
      sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(chosen, Load(block->weights.data())));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(shrunk + x), sum);
  }
}

void ScreenFilter::FinishRow(int row, std::uint8_t* frame) {
  const int first = rows_.first[row];
  const int count = std::min(rows_.taps, rows_.from - first);
  const int area = rows_.denominator * columns_.denominator;
  const __m256i half = _mm256_set1_epi16(static_cast<short>(area / 2));
  const __m256i factor = _mm256_set1_epi16(static_cast<short>(factor_));
  const __m256i whole = _mm256_set1_epi16(static_cast<short>(area));
  for (int x = 0; x < shrunk_items_; x += kVector) {
    __m256i sum = half;
    for (int y = 0; y < count; ++y) {
      const auto weight = static_cast<short>(rows_.exact[row * rows_.taps + y]);
      sum = _mm256_add_epi16(
          sum, _mm256_mullo_epi16(Load(shrunk(first + y) + x), _mm256_set1_epi16(weight)));
    }
    const __m256i mean =
        _mm256_srli_epi16(_mm256_mulhi_epu16(_mm256_srli_epi16(sum, shift_), factor), more_shift_);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(mean), _mm256_extracti128_si256(mean, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(finished_.data() + x), bytes);
    if (area % 2 != 0) continue;
    const __m256i product = _mm256_mullo_epi16(mean, whole);
    auto ties = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi16(product, sum)));
    for (; ties != 0; ties &= ties - 1, ties &= ties - 1) {
      const int column = x + std::countr_zero(ties) / 2;
      if (column >= columns_.to) break;
      const std::uint8_t* source[kMostRows];
      for (int y = 0; y < count; ++y) source[y] = line(first + y);
      finished_[column] = ShrinkPixel(rows_, columns_, row, column, std::span(source).first(count));
    }
  }
  std::memcpy(frame, finished_.data(), columns_.to);
}

void ScreenFilter::ApplySlowly(const std::uint8_t* last, const std::uint8_t* previous,
                               std::uint8_t* frame) {
  std::vector<const std::uint8_t*> source;
  int next = 0;
  for (int row = 0; row < rows_.to; ++row) {
    const int first = rows_.first[row];
    const int end = std::min(first + rows_.taps, rows_.from);
    for (; next < end; ++next) {
      for (int x = 0; x < format_.width; ++x) {
        const int at = next * format_.width + x;
        line(next)[x] = std::max(format_.grey[last[at]], format_.grey[previous[at]]);
      }
    }
    source.clear();
    for (int y = first; y < end; ++y) source.push_back(line(y));
    for (int x = 0; x < columns_.to; ++x) {
      frame[row * columns_.to + x] = ShrinkPixel(rows_, columns_, row, x, source);
    }
  }
}

}  // namespace menger
