#include "menger/runtime/calls/call_inputs.h"

#include <gtest/gtest.h>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(CallInputsTest, AFurtherRunIsToldWhatTheFirstWas) {
  std::vector<std::byte> kept;
  const auto keep = [&kept](std::span<const std::byte> bytes) {
    kept.insert(kept.end(), bytes.begin(), bytes.end());
  };
  CallInputs first({}, keep);
  EXPECT_EQ(first.Plain([] { return 17; }), 17);
  EXPECT_EQ(first.Bytes([] { return std::vector<std::byte>(3, std::byte{1}); }).size(), 3);
  // A second run goes on where the first one ended; what it is told then is kept, too.
  const std::vector<std::byte> known = kept;
  CallInputs second(known, keep);
  EXPECT_TRUE(second.knows());
  EXPECT_EQ(second.Plain([] { return 99; }), 17);
  EXPECT_EQ(second.Bytes([] { return std::vector<std::byte>(); }).size(), 3);
  EXPECT_FALSE(second.knows());
  EXPECT_EQ(kept, known);
  EXPECT_EQ(second.Plain([] { return 5.0; }), 5.0);
  EXPECT_EQ(kept.size(), known.size() + 12);
}

TEST(CallInputsTest, ARunThatDoesSomethingElseIsFound) {
  std::vector<std::byte> kept;
  CallInputs first(
      {}, [&kept](std::span<const std::byte> bytes) { kept.assign(bytes.begin(), bytes.end()); });
  first.Plain([] { return 1; });
  CallInputs second(kept, [](std::span<const std::byte>) {});
  EXPECT_THROW(second.Plain([] { return 1.0; }), Error);
  CallInputs cut(std::span<const std::byte>(kept).first(5), [](std::span<const std::byte>) {});
  EXPECT_THROW(cut.Plain([] { return 1; }), Error);
}

}  // namespace
}  // namespace menger
