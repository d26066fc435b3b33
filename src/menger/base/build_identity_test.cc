#include "menger/base/build_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace menger {
namespace {

TEST(BuildIdentityTest, EveryFieldSaysSomething) {
  const BuildIdentity& build = ThisBuild();
  EXPECT_THAT(build.version, testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(build.commit, testing::MatchesRegex("unknown|[0-9a-f]{12}(\\+dirty)?"));
  EXPECT_THAT(build.commit_date, testing::MatchesRegex("unknown|[0-9]{4}-[0-9]{2}-[0-9]{2}"));
  EXPECT_THAT(build.compiler, testing::HasSubstr(" "));
  EXPECT_FALSE(build.build_type.empty());
}

TEST(BuildIdentityTest, OneLineNamesVersionCommitCompilerAndBuildType) {
  const BuildIdentity build{.version = "1.2.3",
                            .commit = "0123456789ab",
                            .commit_date = "2026-01-02",
                            .compiler = "GNU 12.2.0",
                            .build_type = "Release"};
  EXPECT_EQ(ToString(build),
            "menger 1.2.3 (commit 0123456789ab of 2026-01-02, GNU 12.2.0, Release)");
}

}  // namespace
}  // namespace menger
