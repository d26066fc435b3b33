#include "menger/environments/mujoco_environments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(MujocoEnvironmentsTest, ServesItsOwnNamesAndNoOthers) {
  const MujocoEnvironments family;
  for (const std::string& name : family.examples()) EXPECT_TRUE(family.Serves(name)) << name;
  for (const char* name : {"", "Hopper", "Hopper-v4", "host:Hopper-v5", "CartPole-v1"}) {
    EXPECT_FALSE(family.Serves(name)) << name;
  }
}

TEST(MujocoEnvironmentsTest, WithoutItsLibraryItSaysHowToGetIt) {
  setenv("MENGER_MUJOCO_LIBRARY", "/nowhere/libmenger_mujoco.so", /*overwrite=*/1);
  try {
    MujocoEnvironments().Open("Hopper-v5", EnvironmentUse::kTraining);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("Hopper-v5"), testing::HasSubstr("`make mujoco`"),
                               testing::HasSubstr("/nowhere/libmenger_mujoco.so")));
  }
  unsetenv("MENGER_MUJOCO_LIBRARY");
}

}  // namespace
}  // namespace menger
