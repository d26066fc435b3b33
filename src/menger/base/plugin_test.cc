#include "menger/base/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr const char* kVariable = "MENGER_PLUGIN_TEST_LIBRARY";

std::string TextOf(const Plugin& plugin) {
  try {
    LoadPlugin(plugin);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    return error.what();
  }
  return "";
}

TEST(PluginTest, AFunctionOfALibraryThatTheVariableNamesCanBeCalled) {
  setenv(kVariable, "libm.so.6", /*overwrite=*/1);
  const auto root =
      reinterpret_cast<double (*)(double)>(LoadPlugin({"libabsent.so", kVariable, "sqrt"}));
  EXPECT_EQ(root(49), 7);
  EXPECT_THAT(TextOf({"libabsent.so", kVariable, "no_such_symbol"}),
              testing::AllOf(testing::HasSubstr("'libm.so.6'"), testing::HasSubstr(kVariable)));
  unsetenv(kVariable);
}

TEST(PluginTest, AMissingLibraryIsNamedWithThePlaceBesideTheProgramWhereItShouldBe) {
  EXPECT_THAT(TextOf({"libabsent.so", kVariable, "sqrt"}),
              testing::AllOf(testing::ContainsRegex("'/.*/libabsent.so'"),
                             testing::HasSubstr("No such file")));
}

}  // namespace
}  // namespace menger
