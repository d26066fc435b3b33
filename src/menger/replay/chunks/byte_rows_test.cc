#include <gtest/gtest.h>

#include "menger/base/error.h"
#include "menger/replay/chunks/chunk_store.h"

namespace menger {
namespace {

TEST(ByteRowsTest, TheirIdTellsTheirSize) {
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{28'224}, kByteRowMax}) {
    EXPECT_EQ(ByteRowsIn(StepsId(ByteRows(bytes))), bytes);
    EXPECT_EQ(ByteRows(bytes)[0].bytes(), static_cast<std::size_t>(bytes));
  }
  EXPECT_EQ(ChunkLayout(ByteRows(100), 3).row_bytes(0), 100U);
}

TEST(ByteRowsTest, OtherStepsAreNone) {
  EXPECT_FALSE(ByteRowsIn(StepsId(Spec({LeafSpec::Scalar("bytes", DataType::kFloat32)}))));
  EXPECT_FALSE(ByteRowsIn(StepsId(Spec({LeafSpec::Mask("mask", 8)}))));
  EXPECT_FALSE(ByteRowsIn(0));
}

TEST(ByteRowsTest, ASizeThatNoRowHasIsRefused) {
  EXPECT_THROW(ByteRows(0), Error);
  EXPECT_THROW(ByteRows(kByteRowMax + 1), Error);
}

}  // namespace
}  // namespace menger
