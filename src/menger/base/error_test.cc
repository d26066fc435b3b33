#include "menger/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace menger {
namespace {

template <typename Thrower>
Error Translated(Thrower thrower) {
  try {
    thrower();
  } catch (...) {
    return TranslateCurrentException();
  }
  return Internal("nothing was thrown");
}

TEST(ErrorTest, EachFactoryGivesItsCodeAndFormatsItsText) {
  const std::vector<std::pair<Error, const char*>> cases = {
      {InvalidArgument("x = {}", 1), "InvalidArgument"},
      {NotFound("x = {}", 1), "NotFound"},
      {FailedPrecondition("x = {}", 1), "FailedPrecondition"},
      {Unavailable("x = {}", 1), "Unavailable"},
      {DeadlineExceeded("x = {}", 1), "DeadlineExceeded"},
      {Cancelled("x = {}", 1), "Cancelled"},
      {DataLoss("x = {}", 1), "DataLoss"},
      {Internal("x = {}", 1), "Internal"},
  };
  for (const auto& [error, name] : cases) {
    EXPECT_STREQ(ErrorCodeName(error.code()), name);
    EXPECT_STREQ(error.what(), "x = 1");
  }
}

TEST(ErrorTest, AFailedSystemCallSaysWhatTheCallerCanDo) {
  EXPECT_EQ(FromErrno("a", ENOSPC).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(FromErrno("a", EACCES).code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(FromErrno("a", ENOENT).code(), ErrorCode::kNotFound);
  EXPECT_EQ(FromErrno("a", ETIMEDOUT).code(), ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(FromErrno("a", EINVAL).code(), ErrorCode::kInvalidArgument);
  EXPECT_STREQ(FromErrno("cannot read 'a'", ENOENT).what(),
               "cannot read 'a': No such file or directory");
}

TEST(ErrorTest, ContextIsPutBeforeTheTextAndKeepsTheCode) {
  const Error error = WithContext(DataLoss("entry 'x'"), "checkpoint 7");
  EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  EXPECT_STREQ(error.what(), "checkpoint 7: entry 'x'");
}

TEST(ErrorTest, EveryExceptionIsTranslatedAtAnEdge) {
  EXPECT_EQ(Translated([] { throw Cancelled("a"); }).code(), ErrorCode::kCancelled);
  EXPECT_EQ(Translated([] { throw std::bad_alloc(); }).code(), ErrorCode::kUnavailable);
  EXPECT_EQ(Translated([] { throw std::system_error(ENOSPC, std::system_category()); }).code(),
            ErrorCode::kUnavailable);
  const Error other = Translated([] { throw std::out_of_range("index 9"); });
  EXPECT_EQ(other.code(), ErrorCode::kInternal);
  EXPECT_STREQ(other.what(), "index 9");
  EXPECT_EQ(Translated([] { throw 3; }).code(), ErrorCode::kInternal);
}

// ThreadSanitizer says whether it may: nothing but the text's own count orders the two ends.
TEST(ErrorTest, WhoeverHoldsACopyLastFreesTheText) {
  std::optional<Error> mine = Internal("x = {}", 1);
  std::optional<Error> copy = mine;
  std::atomic<bool> read{false};
  std::thread reader([&] {
    EXPECT_STREQ(copy->what(), "x = 1");
    copy.reset();
    read.store(true, std::memory_order_relaxed);
  });
  while (!read.load(std::memory_order_relaxed)) std::this_thread::yield();
  mine.reset();
  reader.join();
}

TEST(ErrorTest, WhatWasMovedFromKeepsItsText) {
  Error error = Internal("x = {}", 1);
  const Error moved = std::move(error);  // NOLINT(performance-move-const-arg): as others may.
  EXPECT_STREQ(moved.what(), "x = 1");
  EXPECT_STREQ(error.what(), "x = 1");  // NOLINT(bugprone-use-after-move)
}

TEST(ErrorTest, TheNearestNameIsOfferedOnlyIfItIsNear) {
  const std::vector<std::string> names = {"discount", "epochs", "learning_rate", "a"};
  EXPECT_EQ(NearestName("discuont", names), "discount");
  EXPECT_EQ(NearestName("learning_rat", names), "learning_rate");
  EXPECT_EQ(NearestName("epoch", names), "epochs");
  EXPECT_EQ(NearestName("momentum", names), "");
  EXPECT_EQ(NearestName("learn", names), "learning_rate");
  EXPECT_EQ(NearestName("epo", names), "");
  EXPECT_EQ(NearestName("b", names), "");
  EXPECT_EQ(NearestName("x", {}), "");
  EXPECT_EQ(DidYouMean("epoch", names), " (did you mean 'epochs'?)");
  EXPECT_EQ(DidYouMean("momentum", names), "");
}

TEST(ErrorTest, ASentenceIsAddedBehindAStopOrBelowABlock) {
  EXPECT_EQ(WithSentence("it ended with exit status 3", "Ask."),
            "it ended with exit status 3. Ask.");
  EXPECT_EQ(WithSentence("It ended.", "Ask."), "It ended. Ask.");
  EXPECT_EQ(WithSentence("it ended; the last it printed:\n    bye", "Ask."),
            "it ended; the last it printed:\n    bye\nAsk.");
  EXPECT_EQ(WithSentence("ValueError: no\nTraceback (most recent call last):\n  File 'a'", "Ask."),
            "ValueError: no\nTraceback (most recent call last):\n  File 'a'\nAsk.");
  EXPECT_EQ(WithSentence("it ended", ""), "it ended");
}

}  // namespace
}  // namespace menger
