#include "menger/tensor/view.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace menger {
namespace {

TEST(ViewTest, AColumnOfATimeMajorArrayIsReadWithItsStride) {
  const std::vector<std::int32_t> rows = {0, 1, 2, 10, 11, 12, 20, 21, 22};  // [3 rows, 3 columns]
  const StridedView column{.data = reinterpret_cast<const std::byte*>(rows.data() + 1),
                           .item = sizeof(std::int32_t),
                           .stride = 3 * sizeof(std::int32_t),
                           .count = 3};
  EXPECT_FALSE(column.dense());
  EXPECT_EQ(*reinterpret_cast<const std::int32_t*>(column[2]), 21);
}

TEST(ViewTest, GatheringCopiesTheNamedItemsDenselyAndInOrder) {
  const std::vector<float> items = {0, 1, 10, 11, 20, 21};  // Three items of two floats.
  const StridedView view{.data = reinterpret_cast<const std::byte*>(items.data()),
                         .item = 2 * sizeof(float),
                         .stride = 2 * sizeof(float),
                         .count = 3};
  std::vector<float> gathered(6);
  const std::vector<std::int32_t> indices = {2, 0, 2};
  Gather(view, indices, reinterpret_cast<std::byte*>(gathered.data()));
  EXPECT_TRUE(view.dense());
  EXPECT_EQ(gathered, (std::vector<float>{20, 21, 0, 1, 20, 21}));
}

}  // namespace
}  // namespace menger
