#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/environments/environment_testing.h"
#include "menger/environments/hosted/hosted_environments.h"

namespace menger {
namespace {

using testing::HasSubstr;

constexpr int kColumns = 3;
constexpr int kHorizon = 8;

struct Fault {
  std::string fault;
  std::string says;  // Beside the environment and, but for resets, its step.
};

// What may not come from a Python environment (testing/host_faults.py).
class HostedFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string ask =
        std::string(MENGER_TEST_PYTHON) + " -c 'import gymnasium, numpy' 2>/dev/null";
    if (std::system(ask.c_str()) != 0) GTEST_SKIP() << "no gymnasium in " << MENGER_TEST_PYTHON;
  }

  static EnvironmentEntry Open(const std::string& environment, const std::string& fault,
                               bool vector = false) {
    HostedEnvironments family;
    Options options("host");
    family.Declare(options);
    options.Set("python", std::string(MENGER_TEST_PYTHON));
    options.Set("path", std::vector<std::string>{std::string(MENGER_SOURCE_FOLDER) +
                                                 "/src/menger/environments/hosted/testing"});
    options.Set("arguments", fmt::format(R"({{"fault": "{}"}})", fault));
    options.Set("vector", vector);
    return family.Open("host_faults:" + environment, EnvironmentUse::kTraining);
  }

  // Steps over a slab; the error's text, or "" if there was none.
  static std::string Play(const EnvironmentEntry& entry, ErrorBudget* errors = nullptr) {
    GroupUnderTest test(entry, kColumns, kHorizon, {.errors = errors});
    try {
      test.group->Reset(test.slab, 0);
      test.Fill(/*salt=*/1, /*go_on=*/false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition) << error.what();
      return error.what();
    }
    return "";
  }

  static void ExpectRefusals(const std::string& environment, const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) {
      const std::string text = Play(Open(environment, fault.fault));
      EXPECT_THAT(text, HasSubstr(environment + " environment 1 (seed 1), step 3: " + fault.says))
          << fault.fault;
      EXPECT_EQ(text.find("Traceback"), std::string::npos) << text;
    }
  }
};

TEST_F(HostedFaultsTest, WhatAStepMayNotReturnIsNamedWithEnvironmentIndexStepAndValue) {
  ExpectRefusals("Faulty",
                 {{"nan_reward", "its reward is nan; it must be a finite number"},
                  {"inf_reward", "its reward is -inf"},
                  {"none_reward", "its reward is None; it must be one number"},
                  {"vector_reward", "its reward is array([1., 1.]); it must be one number"},
                  {"text_reward", "its reward is 'much'"},
                  {"nan", "element 1 of its 'observation' is nan; it must be a finite number"},
                  {"none", "its 'observation' is None"},
                  {"final_none", "its 'observation' is None"},
                  {"final_nan", "element 0 of its 'observation' is nan"},
                  {"scalar", "its 'observation' has shape (); its observation space says (3,)"},
                  {"shape", "its 'observation' has shape (3, 1)"},
                  {"text", "its 'observation' is 'left', which is no array of numbers"},
                  {"four", "step returned 4 values, as gym's did before 0.26"},
                  {"nothing", "step returned None; it must return five"}});
}

TEST_F(HostedFaultsTest, CodesFlagsAndBytesOutsideTheirSpaceAreNamedWithTheirLeaf) {
  ExpectRefusals("FaultyCodes",
                 {{"codes", "element 0 of its 'observation/codes' has the code 9"},
                  {"fraction", "element (0,) of its 'observation/codes' is 1.7, a float64"},
                  {"flags", "element 0 of its 'observation/flags' is 2; a flag is 0 or 1"},
                  {"level",
                   "its 'observation/level' has the code 3, counted from the space's start; there "
                   "are 0..2"},
                  {"level_fraction", "its 'observation/level' is 1.7, a float64"},
                  {"wrapped", "element (0,) of its 'observation/bytes' is 300"},
                  {"missing", "its observation has no entry 'level'"}});
}

TEST_F(HostedFaultsTest, WhatLosesNothingIsTaken) {
  for (const char* const fault : {"none of them", "list", "float64", "close"}) {
    EXPECT_EQ(Play(Open("Faulty", fault)), "") << fault;
  }
  EXPECT_EQ(Play(Open("FaultyCodes", "int32")), "");
}

TEST_F(HostedFaultsTest, ResetsAreLookedAtToo) {
  EXPECT_THAT(Play(Open("Faulty", "nan_reset")),
              HasSubstr("environment 1 (seed 1), reset: element 0 of its 'observation' is nan"));
  EXPECT_THAT(Play(Open("Faulty", "old_reset")),
              HasSubstr("environment 0 (seed 0), reset: reset returned array([0., 0., 0.]"));
}

TEST_F(HostedFaultsTest, WithRestartsLeftAFreshEpisodeTakesThePlaceOfARefusedValue) {
  for (const char* const fault : {"nan_reward", "nan", "none", "final_nan", "four"}) {
    ErrorBudget errors(/*restarts=*/5);
    GroupUnderTest test(Open("Faulty", fault), kColumns, kHorizon, {.errors = &errors});
    test.group->Reset(test.slab, 0);
    test.Fill(/*salt=*/1, /*go_on=*/false);
    EXPECT_EQ(errors.left(), 4) << fault;
    for (int column = 0; column < kColumns; ++column) {
      EXPECT_EQ(test.slab.valid(3)[column], column == 1 ? 0 : 1) << fault;
      EXPECT_EQ(test.slab.is_first(4)[column], column == 1 ? 1 : 0) << fault;
    }
    for (int row = 0; row < kHorizon; ++row) {
      EXPECT_TRUE(std::isfinite(test.slab.reward(row)[1]));
      EXPECT_TRUE(std::isfinite(test.slab.observation<float>(0, row, 1)[1]));
    }
  }
}

TEST_F(HostedFaultsTest, ABatchIsLookedAtAsItsEnvironmentsAre) {
  EXPECT_THAT(
      Play(Open("many_faulty", "nan_reward", /*vector=*/true)),
      HasSubstr("many_faulty environment 1 (seed 1), step 3: its reward is nan; it must be"));
  EXPECT_THAT(Play(Open("many_faulty", "nan", /*vector=*/true)),
              HasSubstr("element 1 of its 'observation' is nan"));
}

}  // namespace
}  // namespace menger
