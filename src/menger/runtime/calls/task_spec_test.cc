#include "menger/runtime/calls/task_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "menger/base/file_testing.h"

namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::ErrorText;

constexpr TaskId kTask{{.high = 1, .low = 2}};

std::vector<std::byte> SpecBytes(const SpecHeader& header) {
  SpecBuilder builder(header, 0, {}, "cpu=1", "name", 0);
  const SpecPointer spec = builder.Finish();
  return {spec->bytes().begin(), spec->bytes().end()};
}

std::string Refusal(const std::vector<std::byte>& bytes) {
  return ErrorText(ErrorCode::kDataLoss, [&] { TaskSpec::Copy(bytes); });
}

TEST(TaskSpecTest, WhatWasBuiltIsValid) {
  const auto bytes =
      SpecBytes({.kind = CallKind::kConstruct, .task = kTask, .actor = ActorOf(kTask)});
  const SpecPointer copy = TaskSpec::Copy(bytes);
  EXPECT_EQ(copy->name(), "name");
  EXPECT_EQ(copy->scheduling(), "cpu=1");
}

TEST(TaskSpecTest, OneWithoutANameIsGivenOne) {
  SpecBuilder builder({.task = kTask}, 1, {}, "cpu=1", "", SpecBuilder::AlignedSize(5));
  std::ranges::fill(builder.AddValue(5), std::byte{7});
  const SpecPointer spec = builder.Finish();
  const SpecPointer named = TaskSpec::Copy(spec->Named("Add")->bytes());
  EXPECT_EQ(named->name(), "Add");
  EXPECT_EQ(named->scheduling(), "cpu=1");
  EXPECT_EQ(named->value(named->arguments()[0]).size(), 5);
  EXPECT_EQ(named->value(named->arguments()[0])[4], std::byte{7});
  EXPECT_EQ(named->Named("Other")->name(), "Add");
}

TEST(TaskSpecTest, AFlagIsZeroOrOne) {
  auto bytes = SpecBytes({.task = kTask});
  bytes[offsetof(SpecHeader, named)] = std::byte{208};
  EXPECT_THAT(Refusal(bytes), HasSubstr("a flag of call"));
}

TEST(TaskSpecTest, AConstructionMakesItsOwnActorAndNothingElse) {
  const ActorId other = ActorOf(RootTask(1));
  EXPECT_THAT(Refusal(SpecBytes({.kind = CallKind::kConstruct, .task = kTask, .actor = other})),
              HasSubstr("makes actor"));
  EXPECT_THAT(
      Refusal(SpecBytes(
          {.kind = CallKind::kConstruct, .task = kTask, .actor = ActorOf(kTask), .results = 0})),
      HasSubstr("with 0 results"));
}

TEST(TaskSpecTest, EveryEndThatIsTooEarlyIsRefused) {
  const auto bytes = SpecBytes({.task = kTask});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(Refusal({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
              "nothing was thrown");
  }
}

}  // namespace
}  // namespace menger
