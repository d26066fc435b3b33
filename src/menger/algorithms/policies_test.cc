// Policies of every algorithm: slices that share a batch, and processes without a learner.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "menger/algorithms/algorithm.h"
#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/collectors/collector.h"
#include "menger/environments/catalog.h"
#include "menger/networks/recorded_input.h"
#include "menger/parameters/shared_parameters.h"

namespace menger {
namespace {

constexpr int kColumns = 5;

struct Case {
  std::string algorithm;
  std::string environment;
};

// An algorithm with each environment whose actions it takes.
std::vector<Case> Cases() {
  const EnvironmentCatalog catalog = NativeEnvironments();
  std::vector<Case> cases;
  for (const auto& entry : AllAlgorithms()) {
    for (const char* const name : {"CartPole-v1", "Pendulum-v1"}) {
      try {
        entry->Check(catalog.Find(name).spec);
        cases.push_back({.algorithm = entry->name(), .environment = name});
      } catch (const Error&) {
      }
    }
  }
  return cases;
}

std::unique_ptr<AlgorithmEntry> EntryNamed(const std::string& name) {
  for (auto& entry : AllAlgorithms()) {
    if (entry->name() == name) return std::move(entry);
  }
  return nullptr;
}

class PoliciesTest : public testing::TestWithParam<Case> {
 protected:
  PoliciesTest()
      : environment_(NativeEnvironments().Find(GetParam().environment)),
        entry_(EntryNamed(GetParam().algorithm)) {
    Options options(entry_->name());
    entry_->Declare(options);
    context_ = {.environment = environment_.spec, .environments = kColumns, .seed = 3};
    context_.network.hidden = {8};
    context_.transforms.apply = {"normalise_observation"};
  }

  std::unique_ptr<Slab> NewSlab(const PolicySpec& policy, std::int64_t first_step) const {
    auto slab = std::make_unique<Slab>(SlabSpec{.observation = environment_.spec.observation,
                                                .state = policy.state,
                                                .action = environment_.spec.action,
                                                .policy = policy.columns,
                                                .horizon = 4,
                                                .columns = ColumnLayout::Single(kColumns)});
    slab->set_first_step(first_step);
    const auto elements = environment_.spec.observation[0].elements();
    for (int row = 0; row < 4; ++row) {
      const auto shown = RecordedInput(kColumns * elements, first_step + row, 1);
      std::ranges::copy(shown, slab->observation<float>(0, row));
    }
    return slab;
  }

  std::string ActionsIn(const Slab& slab, int row) const {
    const auto* const bytes = slab.action<char>(0, row);
    std::string text(bytes, kColumns * environment_.spec.action[0].bytes());
    for (int column = 0; column < slab.spec().policy.size(); ++column) {
      const auto* const values = slab.policy<char>(column, row);
      text.append(values, kColumns * slab.spec().policy[column].bytes());
    }
    return text + std::to_string(slab.version(row)[0]);
  }

  const EnvironmentEntry environment_;
  const std::unique_ptr<AlgorithmEntry> entry_;
  AlgorithmContext context_;
};

TEST_P(PoliciesTest, SlicesOfDifferentRowsAndSlabsAreActedOnAsEachAlone) {
  const auto algorithm = entry_->Make(context_);
  for (const PolicyMode mode : {PolicyMode::kSample, PolicyMode::kGreedy}) {
    const PolicySpec& spec = algorithm->policies().spec();
    const auto first = NewSlab(spec, 0);
    const auto second = NewSlab(spec, 1000);
    const auto first_alone = NewSlab(spec, 0);
    const auto second_alone = NewSlab(spec, 1000);
    const auto together = algorithm->MakePolicy(mode, 2);
    const auto apart = algorithm->MakePolicy(mode, 2);
    const ActSlice slices[] = {
        {.slab = first.get(), .row = 0, .positions = {.first = 0, .count = 2}},
        {.slab = second.get(), .row = 3, .positions = {.first = 0, .count = kColumns}},
        {.slab = first.get(), .row = 0, .positions = {.first = 2, .count = 3}}};
    together->Act(slices);
    apart->Act(*second_alone, 3, {.first = 0, .count = kColumns});
    apart->Act(*first_alone, 0, {.first = 0, .count = kColumns});
    EXPECT_EQ(ActionsIn(*first, 0), ActionsIn(*first_alone, 0));
    EXPECT_EQ(ActionsIn(*second, 3), ActionsIn(*second_alone, 3));
  }
}

TEST_P(PoliciesTest, WithoutALearnerTheyAreThoseOfTheLearner) {
  const auto algorithm = entry_->Make(context_);
  const auto policies = entry_->MakePolicies(context_);
  EXPECT_EQ(policies->manifest().ToText(), algorithm->policies().manifest().ToText());
  algorithm->Publish();
  for (const PolicyMode mode : {PolicyMode::kSample, PolicyMode::kGreedy}) {
    const auto first = NewSlab(policies->spec(), 7);
    const auto second = NewSlab(algorithm->policies().spec(), 7);
    policies->Make(algorithm->publication(), mode, 2)->Act(*first, 1, {.first = 0, .count = 5});
    algorithm->MakePolicy(mode, 2)->Act(*second, 1, {.first = 0, .count = 5});
    EXPECT_EQ(ActionsIn(*first, 1), ActionsIn(*second, 1));
  }
}

// An observation is worth the same in the side buffer as in a row that is acted on.
TEST_P(PoliciesTest, FinalObservationsAreValuedAsIfTheyWereActedOn) {
  const auto algorithm = entry_->Make(context_);
  const PolicySpec& spec = algorithm->policies().spec();
  const auto policy = algorithm->MakePolicy(PolicyMode::kSample, 2);
  const auto slab = NewSlab(spec, 0);
  policy->Act(*slab, 1, {.first = 0, .count = kColumns});
  std::vector<int> slots;
  for (const int column : {3, 0}) {
    const int slot = slab->FinalSlot(2, column);
    std::memcpy(slab->final_observation(0, slot), slab->observation(0, 1, column),
                slab->observation_bytes(0));
    slots.push_back(slot);
  }
  std::vector<float> values(slots.size());
  const auto& columns = spec.columns.leaves();
  const auto value = std::ranges::find(columns, "value", &LeafSpec::name);
  if (value == columns.end()) {
    EXPECT_THROW(policy->FinalValues(*slab, slots, values), Error);
    return;
  }
  policy->FinalValues(*slab, slots, values);
  const auto* const acted = slab->policy<float>(static_cast<int>(value - columns.begin()), 1);
  EXPECT_EQ(values, (std::vector<float>{acted[3], acted[0]}));
}

// What another process does: steps environments and follows versions until one of this number has
// acted. Returns 0 if it came.
int FollowUntil(const AlgorithmEntry& entry, const AlgorithmContext& context,
                const EnvironmentEntry& environment, int descriptor, std::int64_t number) {
  const auto policies = entry.MakePolicies(context);
  const SharedParameters source(descriptor);
  const auto collector =
      MakeCollector({.environments = kColumns, .horizon = 8, .pin = false, .seed = 1}, environment,
                    [&] { return policies->Make(source, PolicyMode::kSample, 2); });
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  while (!deadline.expired()) {
    const Slab& slab = collector->Collect();
    const ParameterVersion wanted{.number = number};
    if (slab.version(7)[0] == wanted.packed()) return 0;
  }
  return 1;
}

TEST_P(PoliciesTest, AnotherProcessFollowsTheVersionsThatThisOnePublishes) {
  const auto algorithm = entry_->Make(context_);
  SharedPublication shared(algorithm->policies().manifest());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int result = 2;
    try {
      result = FollowUntil(*entry_, context_, environment_, shared.descriptor(), 6);
    } catch (const std::exception& error) {
      static_cast<void>(std::fputs(error.what(), stderr));
    }
    _exit(result);
  }
  for (int i = 0; i < 5; ++i) {
    algorithm->Publish();
    shared.Publish(*algorithm->publication().Latest());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(All, PoliciesTest, testing::ValuesIn(Cases()), [](const auto& info) {
  return info.param.algorithm + "_" +
         info.param.environment.substr(0, info.param.environment.find('-'));
});

TEST(PolicyMakerTest, ASourceOfOtherParametersIsRefused) {
  const EnvironmentEntry environment = NativeEnvironments().Find("CartPole-v1");
  const auto entry = EntryNamed("ppo");
  Options options("ppo");
  entry->Declare(options);
  AlgorithmContext context{.environment = environment.spec, .seed = 3};
  const auto wide = entry->MakePolicies(context);
  context.network.hidden = {8};
  const auto narrow = entry->Make(context);
  try {
    wide->Make(narrow->publication(), PolicyMode::kGreedy, 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.what()).find("policy/0/weight"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace menger
