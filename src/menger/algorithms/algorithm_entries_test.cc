#include "menger/algorithms/algorithm_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "menger/algorithms/a2c.h"
#include "menger/algorithms/dqn.h"
#include "menger/algorithms/ppo.h"
#include "menger/base/error.h"
#include "menger/environments/catalog.h"

namespace menger {
namespace {

using testing::HasSubstr;
using Entries = std::vector<std::unique_ptr<AlgorithmEntry>>;

// Defaults by section and name, as text.
std::map<std::string, std::map<std::string, std::string>> DefaultsOnCartPole(
    const AlgorithmEntry& entry) {
  std::map<std::string, std::map<std::string, std::string>> defaults;
  const EnvironmentSpec environment = NativeEnvironments().Find("CartPole-v1").spec;
  for (const OptionDefault& value : entry.Defaults(environment, /*steps=*/100'000)) {
    defaults[value.section][value.name] = ToText(value.value);
  }
  return defaults;
}

// A2C declares neither epochs nor minibatch_size.
TEST(AlgorithmEntriesTest, AnAlgorithmTakesTheDefaultsOfItsKinIntoItsOwnSection) {
  const ActorCriticEntry<PpoConfig, Ppo, PpoDefaults> ppo("ppo", "");
  const ActorCriticEntry<A2cConfig, A2c, PpoDefaults> kin("kin", "");
  auto expected = DefaultsOnCartPole(ppo);
  auto own = expected.extract("ppo").mapped();
  EXPECT_EQ(own.erase("epochs") + own.erase("minibatch_size"), 2U);
  EXPECT_EQ(own.at("value_coefficient"), "1");
  expected["kin"] = own;
  EXPECT_EQ(DefaultsOnCartPole(kin), expected);
}

TEST(AlgorithmEntriesTest, DefaultsMayFollowTheConfiguration) {
  ReplayEntry<DqnConfig, Dqn, DqnDefaults> entry("dqn", "");
  Options options("dqn");
  entry.Declare(options);
  EXPECT_TRUE(DefaultsOnCartPole(entry)["dqn"].contains("huber_delta"));
  options.SetFromText("distribution", "qr");
  EXPECT_FALSE(DefaultsOnCartPole(entry)["dqn"].contains("huber_delta"));
}

TEST(AlgorithmEntriesTest, TheDataRuleIsThatOfWhatIsMade) {
  for (const auto& entry : AllAlgorithms()) {
    for (const char* const name : {"CartPole-v1", "Pendulum-v1"}) {
      AlgorithmContext context{.environment = NativeEnvironments().Find(name).spec};
      context.network.hidden = {4};
      try {
        entry->Check(context.environment);
      } catch (const Error&) {
        continue;
      }
      EXPECT_EQ(entry->Make(context)->data_rule(), entry->data_rule()) << entry->name();
    }
  }
}

std::string RefusalOf(const std::vector<std::string>& names) {
  Entries entries;
  for (const std::string& name : names) {
    entries.push_back(
        std::make_unique<ActorCriticEntry<PpoConfig, Ppo, PpoDefaults>>(name, "for tests"));
  }
  try {
    WithCheckedNames(std::move(entries));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    return error.what();
  }
  return "not refused";
}

TEST(AlgorithmNamesTest, EachAlgorithmHasANameOfItsOwnThatCanBeASection) {
  EXPECT_EQ(RefusalOf({"ppo", "soft_q", "r2d2"}), "not refused");
  EXPECT_THAT(RefusalOf({"ppo", "a2c", "ppo"}), HasSubstr("two algorithms are called 'ppo'"));
  for (const std::string name : {"Soft Q!", "", "2ppo", "PPO", "soft-q"}) {
    EXPECT_THAT(RefusalOf({"ppo", name}), HasSubstr("is called '" + name + "'; its name must be"));
  }
  EXPECT_THAT(RefusalOf({"collector"}), HasSubstr("'collector', as something else"));
}

}  // namespace
}  // namespace menger
