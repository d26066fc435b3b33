#include "menger/environments/atari/screen_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "menger/base/counter_random.h"
#include "menger/base/error.h"

namespace menger {
namespace {

using Bytes = std::vector<std::uint8_t>;

ScreenFormat FormatOf(int height = 210, int width = 160) {
  ScreenFormat format{.height = height, .width = width};
  for (int i = 0; i < 256; ++i) format.grey[i] = static_cast<std::uint8_t>((i * 151 + 7) % 256);
  return format;
}

// Even indices in patches, as on a screen, or noise.
Bytes Screen(const ScreenFormat& format, std::uint64_t seed, int patch) {
  const CounterRandom random(seed, /*stream=*/0);
  Bytes screen(static_cast<std::size_t>(format.height) * format.width);
  for (int y = 0; y < format.height; ++y) {
    for (int x = 0; x < format.width; ++x) {
      screen[y * format.width + x] =
          static_cast<std::uint8_t>(random.Draw(y / patch, x / patch)[0] & 0xfe);
    }
  }
  return screen;
}

Bytes Apply(ScreenFilter& filter, int height, int width, const Bytes& last, const Bytes* previous) {
  Bytes frame(static_cast<std::size_t>(height) * width);
  filter.Apply(last.data(), previous == nullptr ? nullptr : previous->data(), frame.data());
  return frame;
}

// The definition: the mean over the area, from the largest brightness of both screens, in float64.
std::vector<double> Means(const ScreenFormat& format, int height, int width, const Bytes& last,
                          const Bytes& previous) {
  std::vector<double> means;
  const auto overlap = [](double from, double to, int cell) {
    return std::max(0.0, std::min(to, cell + 1.0) - std::max(from, static_cast<double>(cell)));
  };
  const double down = static_cast<double>(format.height) / height;
  const double along = static_cast<double>(format.width) / width;
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      double sum = 0;
      for (int y = static_cast<int>(row * down);
           y < std::min<int>(format.height, (row + 1) * down + 1); ++y) {
        for (int x = static_cast<int>(column * along);
             x < std::min<int>(format.width, (column + 1) * along + 1); ++x) {
          const int at = y * format.width + x;
          sum += overlap(row * down, (row + 1) * down, y) *
                 overlap(column * along, (column + 1) * along, x) *
                 std::max(format.grey[last[at]], format.grey[previous[at]]);
        }
      }
      means.push_back(sum / (down * along));
    }
  }
  return means;
}

struct Size {
  int from_height, from_width, height, width;
};

class ScreenFilterSizes : public testing::TestWithParam<Size> {};

TEST_P(ScreenFilterSizes, EachPixelIsTheRoundedMeanOfTheAreaItCovers) {
  const auto [from_height, from_width, height, width] = GetParam();
  const ScreenFormat format = FormatOf(from_height, from_width);
  ScreenFilter filter(format, height, width);
  for (const int patch : {1, 3, 16}) {
    const Bytes last = Screen(format, 1, patch);
    const Bytes previous = Screen(format, 2, patch);
    const Bytes frame = Apply(filter, height, width, last, &previous);
    const std::vector<double> means = Means(format, height, width, last, previous);
    for (std::size_t i = 0; i < frame.size(); ++i) {
      ASSERT_LE(std::abs(frame[i] - means[i]), 0.5 + 1e-4) << "patch " << patch << " pixel " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Usual, ScreenFilterSizes,
                         testing::Values(Size{210, 160, 84, 84}, Size{210, 160, 104, 80},
                                         Size{210, 160, 105, 80}, Size{210, 160, 96, 96},
                                         Size{210, 160, 64, 64}, Size{250, 160, 84, 84},
                                         Size{210, 160, 210, 160}, Size{30, 32, 10, 8}));

TEST(ScreenFilterTest, TheSizesOfThePresetsAreFast) {
  EXPECT_TRUE(ScreenFilter(FormatOf(), 84, 84).is_fast());
  EXPECT_TRUE(ScreenFilter(FormatOf(), 104, 80).is_fast());
  EXPECT_FALSE(ScreenFilter(FormatOf(), 64, 64).is_fast());
}

// An odd index in the corner changes no mean that the test looks at, and takes the slow way.
TEST(ScreenFilterTest, TheFastWayEqualsTheSlowOneAlsoWhereAMeanLiesBetweenTwoNumbers) {
  ScreenFormat format = FormatOf();
  for (int i = 0; i < 256; i += 2) format.grey[i + 1] = format.grey[i];
  for (const auto& [height, width] : {std::pair{84, 84}, std::pair{104, 80}, std::pair{105, 80}}) {
    ScreenFilter filter(format, height, width);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Bytes last = Screen(format, seed, 1 + static_cast<int>(seed % 7));
      const Bytes previous = Screen(format, 100 + seed, 2);
      Bytes odd = last;
      odd[0] |= 1;
      EXPECT_EQ(Apply(filter, height, width, last, &previous),
                Apply(filter, height, width, odd, &previous))
          << height << " x " << width << " seed " << seed;
    }
  }
}

TEST(ScreenFilterTest, OneScreenAloneIsItsOwnBrightest) {
  ScreenFilter filter(FormatOf(), 84, 84);
  const Bytes last = Screen(FormatOf(), 1, 2);
  EXPECT_EQ(Apply(filter, 84, 84, last, nullptr), Apply(filter, 84, 84, last, &last));
}

TEST(ScreenFilterTest, NothingIsWrittenBesideTheFrame) {
  ScreenFilter filter(FormatOf(), 84, 84);
  const Bytes last = Screen(FormatOf(), 1, 2);
  Bytes frame(84 * 84 + 64, 99);
  filter.Apply(last.data(), nullptr, frame.data());
  EXPECT_THAT(Bytes(frame.end() - 64, frame.end()), testing::Each(99));
}

TEST(ScreenFilterTest, AFrameIsNotLargerThanTheScreen) {
  EXPECT_THROW(ScreenFilter(FormatOf(), 211, 84), Error);
  EXPECT_THROW(ScreenFilter(FormatOf(), 84, 0), Error);
}

// tests/atari_record.py: cv2.resize of OpenCV 5.0.0 with INTER_AREA on the picture made below;
// FNV-1a of the bytes.
TEST(ScreenFilterTest, EqualsOpenCvBitForBit) {
  const auto hash = [](const Bytes& bytes) {
    return std::accumulate(
        bytes.begin(), bytes.end(), std::uint64_t{0xcbf29ce484222325},
        [](std::uint64_t sum, std::uint8_t byte) { return (sum ^ byte) * 0x100000001b3; });
  };
  const auto shrunk = [&](int height, int width, int multiplier) {
    ScreenFormat format{};
    for (int i = 0; i < 256; ++i) format.grey[i] = static_cast<std::uint8_t>(i);
    Bytes screen(210 * 160);
    for (std::uint32_t i = 0; i < screen.size(); ++i) {
      screen[i] =
          static_cast<std::uint8_t>((i * i * static_cast<std::uint32_t>(multiplier) >> 7) & 0xfe);
    }
    ScreenFilter filter(format, height, width);
    return hash(Apply(filter, height, width, screen, nullptr));
  };
  EXPECT_EQ(shrunk(84, 84, 7), 0x9e18317fba5fb946U);
  EXPECT_EQ(shrunk(104, 80, 7), 0x1d2ada599d55b671U);
  EXPECT_EQ(shrunk(64, 64, 7), 0x7ea3e269b54c6dc5U);
  EXPECT_EQ(shrunk(105, 80, 7), 0x7e6e4d75fdd6350bU);
}

}  // namespace
}  // namespace menger
