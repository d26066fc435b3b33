#include "menger/algorithms/schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(ScheduleTest, EachIsWhatItSays) {
  const Schedule constant("constant");
  const Schedule linear("linear");
  const Schedule cosine("cosine");
  const Schedule points("0:1 0.5:0.2 0.75:0.2");
  EXPECT_EQ(constant.At(0), 1);
  EXPECT_EQ(constant.At(1), 1);
  EXPECT_EQ(linear.At(0), 1);
  EXPECT_DOUBLE_EQ(linear.At(0.3), 0.7);
  EXPECT_EQ(linear.At(1), 0);
  EXPECT_EQ(cosine.At(0), 1);
  EXPECT_DOUBLE_EQ(cosine.At(1.0 / 3), 0.75);  // (1 + cos 60 degrees) / 2.
  EXPECT_NEAR(cosine.At(1), 0, 1e-15);
  EXPECT_EQ(points.At(0), 1);
  EXPECT_DOUBLE_EQ(points.At(0.25), 0.6);
  EXPECT_DOUBLE_EQ(points.At(0.5), 0.2);
  EXPECT_DOUBLE_EQ(points.At(1), 0.2);
}

TEST(ScheduleTest, WhatIsNoneIsRefusedWithWhatWouldBeRight) {
  std::string field = "linear";
  Options options("ppo");
  Schedule::Declare(options, "learning_rate_schedule", &field, "the learning rate");
  for (const char* const text : {"", "lineer", "0.5", "0.1:1", "0:1 0:2", "0:1 1.5:0", "0:-1",
                                 "0:1 0.5", "0:nan", "0:1,1:0"}) {
    EXPECT_THROW(Schedule{text}, Error) << text;
    try {
      options.Set("learning_rate_schedule", std::string(text));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("0:1 0.5:1 1:0.1"), std::string::npos)
          << error.what();
    }
  }
  options.Set("learning_rate_schedule", std::string("0:1 1:0.1"));
  EXPECT_EQ(field, "0:1 1:0.1");
}

}  // namespace
}  // namespace menger
