#include "menger/runtime/values/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

using testing::HasSubstr;

std::string WhyNot(const std::string& text) {
  try {
    Resources::Parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    return error.what();
  }
  return "";
}

TEST(ResourcesTest, TextsAreRead) {
  const Resources read = Resources::Parse("cpu=2 tpu=0.5");
  EXPECT_EQ(read.Get("cpu"), 2);
  EXPECT_EQ(read.Get("tpu"), .5);
  EXPECT_EQ(Resources::Parse(""), Resources());
  EXPECT_EQ(Resources::Parse(" cpu=2  tpu=0.5 "), read);
}

TEST(ResourcesTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(WhyNot("tpu"), HasSubstr("'tpu' is no amount of a resource"));
  EXPECT_THAT(WhyNot("tpu=x"), HasSubstr("'tpu=x'"));
  EXPECT_THAT(WhyNot("tpu=-1"), HasSubstr("resource 'tpu' is -1"));
  EXPECT_THAT(WhyNot("tpu=nan"), HasSubstr("resource 'tpu' is nan"));
  EXPECT_THAT(WhyNot("a=1 b=1 a=2"), HasSubstr("'a=2' gives resource 'a' a second amount"));
}

}  // namespace
}  // namespace menger
