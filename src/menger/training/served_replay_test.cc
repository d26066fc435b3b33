#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/file_testing.h"
#include "menger/environments/catalog.h"
#include "menger/replay/server/replay_server.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/replay_fixture.h"

// A learner whose replay is a server's.
namespace menger {
namespace {

using testing::HasSubstr;
using testing_files::ErrorText;

ReplaySetup SmallSetup(const std::string& sampler) {
  ReplaySetup setup{.environments = 3, .horizon = 5, .steps = 1'500};
  setup.options = {{"epsilon_fraction", "0.5"}, {"target_every", "20"}, {"n_step", "3"}};
  setup.replay = {.capacity = 500,
                  .min_size = 100,
                  .batch_size = 16,
                  .training_intensity = 8,
                  .sampler = sampler,
                  .chunk_steps = 16};
  setup.network.hidden = {16};
  return setup;
}

EnvironmentEntry CartPole() { return NativeEnvironments().Find("CartPole-v1"); }

// What `menger replay serve` runs for such a recipe.
struct Served {
  explicit Served(const ReplaySetup& setup)
      : store(StoreOf(setup)), server(store, nullptr, {.socket = folder / "socket"}) {}

  static ReplayStoreOptions StoreOf(const ReplaySetup& setup) {
    ReplayRun run(setup, CartPole());  // For its items.
    ReplayStoreOptions options = ReplayStoreFor(
        setup.replay, {.environments = setup.environments, .seed = setup.seed}, run.algorithm());
    options.shared = true;
    return options;
  }

  const testing_files::Folder folder;
  ReplayStore store;
  ReplayServer server;
};

// Equal, or no number in both.
void ExpectSame(const Metrics& one, const Metrics& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].first, other[i].first);
    if (std::isnan(one[i].second) && std::isnan(other[i].second)) continue;
    EXPECT_EQ(one[i].second, other[i].second) << one[i].first;
  }
}

TEST(ServedReplayTest, ALearnerWithAServerHasTheBitsOfOneWithAStoreOfItsOwn) {
  for (const char* const sampler : {"uniform", "prioritised"}) {
    const ReplaySetup setup = SmallSetup(sampler);
    Served served(setup);
    ReplaySetup with_server = setup;
    with_server.replay.address = served.folder / "socket";
    ReplayRun own(setup, CartPole());
    ReplayRun remote(with_server, CartPole());
    for (int slab = 0; slab < 100; ++slab) ExpectSame(own.Step(), remote.Step());
  }
}

TEST(ServedReplayTest, ATableOfAnotherRecipeIsRefusedWithTheDifference) {
  const ReplaySetup setup = SmallSetup("uniform");
  Served served(setup);
  ReplaySetup other = setup;
  other.replay.address = served.folder / "socket";
  other.replay.sampler = "prioritised";
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { ReplayRun(other, CartPole()); }),
              HasSubstr("replay.sampler is prioritised"));
  other.replay.sampler = "uniform";
  other.replay.min_size = 50;
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { ReplayRun(other, CartPole()); }),
              HasSubstr("lets nobody draw before it has 100 items"));
  other.replay.min_size = 100;
  other.options.back().second = "1";  // n_step.
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { ReplayRun(other, CartPole()); }),
              HasSubstr("reward"));
  other = setup;
  other.replay.address = served.folder / "socket";
  other.replay.table = "replays";
  EXPECT_THAT(ErrorText(ErrorCode::kNotFound, [&] { ReplayRun(other, CartPole()); }),
              HasSubstr("did you mean 'replay'"));
}

}  // namespace
}  // namespace menger
