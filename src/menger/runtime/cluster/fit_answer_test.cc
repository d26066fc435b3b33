#include "menger/runtime/cluster/fit_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace menger {
namespace {

using testing::HasSubstr;
using Outcome = StoreResult::Outcome;

constexpr std::size_t kFrame = std::size_t{64} << 10;

StoreResult Got(std::size_t value_bytes) {
  return {.record = {.key = "key", .value = std::string(value_bytes, 'x'), .version = 1}};
}
StoreResult FailedWith(std::size_t text_bytes) {
  return {.outcome = Outcome::kFailed,
          .error = Error(ErrorCode::kFailedPrecondition, std::string(text_bytes, 'x'))};
}

StoreAnswer Fitted(StoreAnswer answer) {
  FitAnswer(answer, kFrame);
  EXPECT_LE(EncodeStoreAnswer(answer).size(), kFrame);
  return answer;
}

TEST(FitAnswerTest, WhatHasRoomStaysAsItIs) {
  const StoreAnswer few = Fitted({.results = {Got(30'000), FailedWith(1'000), Got(30'000)}});
  EXPECT_EQ(few.results[2].record.value.size(), 30'000u);
  EXPECT_EQ(std::string(few.results[1].error->what()).size(), 1'000u);
  const StoreAnswer page = Fitted({.kind = StoreAnswer::Kind::kPage,
                                   .page = {.records = {Got(30'000).record, Got(30'000).record}}});
  EXPECT_EQ(page.page.records.size(), 2u);
  EXPECT_EQ(page.page.next, "");
}

TEST(FitAnswerTest, AnyBatchFits) {
  constexpr std::size_t kMost = kFrame / kStoreResultRoom;
  for (const StoreResult& each : {Got(0), Got(1'000), Got(kFrame), FailedWith(3'000)}) {
    std::vector<StoreResult> results(kMost, each);
    results.push_back({.record = {.version = 77}});
    const StoreAnswer answer = Fitted({.results = results});
    ASSERT_EQ(answer.results.size(), kMost + 1);
    EXPECT_TRUE(answer.results.back().done());
    EXPECT_EQ(answer.results.back().record.version, 77u);
  }
}

TEST(FitAnswerTest, WhatHasNoRoomIsNamed) {
  const StoreAnswer answer = Fitted({.results = {Got(40'000), Got(40'000), Got(10)}});
  EXPECT_TRUE(answer.results[0].done());
  EXPECT_EQ(answer.results[1].outcome, Outcome::kFailed);
  EXPECT_EQ(answer.results[1].error.value().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(answer.results[1].error->what(), HasSubstr("40000 bytes"));
  EXPECT_EQ(answer.results[2].record.value.size(), 10u);
}

TEST(FitAnswerTest, CodesOfErrorsStay) {
  const StoreAnswer answer = Fitted({.results = {Got(60'000), FailedWith(20'000)}});
  EXPECT_EQ(answer.results[1].error.value().code(), ErrorCode::kFailedPrecondition);
}

TEST(FitAnswerTest, APageGoesOnWhereItWasCut) {
  StoreAnswer answer{.kind = StoreAnswer::Kind::kPage, .page = {.next = "9", .newest = 4}};
  for (int i = 0; i < 10; ++i) {
    answer.page.records.push_back(Got(20'000).record);
    answer.page.records.back().key = std::to_string(i);
  }
  const StoreAnswer fitted = Fitted(answer);
  EXPECT_EQ(fitted.page.records.size(), 3u);
  EXPECT_EQ(fitted.page.next, "2");
  EXPECT_EQ(fitted.page.newest, 4u);
}

TEST(FitAnswerTest, ARecordThatNoPageHasRoomForIsAnError) {
  const StoreAnswer fitted = Fitted(
      {.kind = StoreAnswer::Kind::kPage, .page = {.records = {Got(kFrame).record, Got(1).record}}});
  EXPECT_TRUE(fitted.page.records.empty());
  EXPECT_EQ(fitted.page.error.value().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace menger
