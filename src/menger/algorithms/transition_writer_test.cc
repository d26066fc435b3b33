#include "menger/algorithms/transition_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "menger/algorithms/random_episodes.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/local_replay.h"
#include "menger/replay/replay_store.h"

namespace menger::random_episodes {
namespace {

struct Transition {
  std::vector<float> observation, next_observation;  // Stacks, newest last.
  std::vector<float> rewards;
  std::int64_t action = 0;
  std::uint8_t terminated = 0, next_mask = 0;

  bool operator==(const Transition&) const = default;
};

std::vector<float> Stack(const std::vector<Row>& rows, std::size_t newest, int frames) {
  std::vector<float> stack(frames, 0.0F);
  for (int i = frames - 1; i >= 0; --i, --newest) {
    stack[i] = rows[newest].observation;
    if (rows[newest].is_first) break;
  }
  return stack;
}

// What follows from decision `t`, read off the rows one by one; nothing if they do not tell yet, or
// never will.
std::optional<Transition> Follow(const std::vector<Row>& rows, std::size_t t, int n, int frames) {
  Transition result{.observation = Stack(rows, t, frames), .action = rows[t].action};
  for (std::size_t row = t;; ++row) {
    result.rewards.push_back(std::clamp(static_cast<float>(rows[row].reward), -1.0F, 1.0F));
    if (rows[row].terminated || rows[row].truncated) {
      result.terminated = rows[row].terminated ? 1 : 0;
      result.next_observation = Stack(rows, row, frames);
      result.next_observation.erase(result.next_observation.begin());
      result.next_observation.push_back(rows[row].final_observation);
      result.next_mask = rows[row].final_mask;
      break;
    }
    if (row + 1 == rows.size() || rows[row + 1].is_first) return std::nullopt;
    if (static_cast<int>(result.rewards.size()) == n || !rows[row + 1].valid) {
      result.next_observation = Stack(rows, row + 1, frames);
      result.next_mask = rows[row + 1].mask;
      break;
    }
  }
  result.rewards.resize(n, 0.0F);
  return result;
}

Transition ItemOf(const TransitionFormat& format, std::span<const BatchColumn> columns, int item,
                  int* environment) {
  const int n = format.options().n_step;
  const int frames = format.options().frame_stack;
  const auto at = [&]<typename T>(int column, T*) {
    return reinterpret_cast<const T*>(columns[column].data +
                                      static_cast<std::size_t>(item) * columns[column].item_bytes);
  };
  Transition result;
  const bool image = format.has_vector();
  const float* const observation =
      at(image ? format.vector_column() : TransitionFormat::kObservation,
         static_cast<float*>(nullptr));
  const float* const next =
      at(image ? format.next_vector_column() : TransitionFormat::kNextObservation,
         static_cast<float*>(nullptr));
  for (int frame = 0; image && frame < frames; ++frame) {
    const auto pixel = [&](int column) {
      return at(column, static_cast<std::uint8_t*>(nullptr))[frame];
    };
    EXPECT_EQ(pixel(TransitionFormat::kObservation), PixelOf(observation[2 * frame + 1]));
    EXPECT_EQ(pixel(TransitionFormat::kNextObservation), PixelOf(next[2 * frame + 1]));
  }
  for (int frame = 0; frame < frames; ++frame) {
    result.observation.push_back(observation[2 * frame + 1]);
    result.next_observation.push_back(next[2 * frame + 1]);
  }
  *environment = static_cast<int>(observation[2 * (frames - 1)]);
  const float* const rewards = at(TransitionFormat::kReward, static_cast<float*>(nullptr));
  result.rewards.assign(rewards, rewards + n);
  result.action = *at(TransitionFormat::kAction, static_cast<std::int64_t*>(nullptr));
  result.terminated = *at(TransitionFormat::kTerminated, static_cast<std::uint8_t*>(nullptr));
  result.next_mask = *at(TransitionFormat::kNextMask, static_cast<std::uint8_t*>(nullptr));
  return result;
}

struct Setting {
  int n = 1;
  int frames = 1;
  bool image = false;
};

class TransitionWriterTest : public testing::TestWithParam<Setting> {};

TEST_P(TransitionWriterTest, ItemsAreWhatTheRowsSayWhateverEndsEpisodesAndHoweverSlabsCutThem) {
  const auto [n, frames, image] = GetParam();
  const EnvironmentSpec environment = MaskedSpec(image);
  const TransitionFormat format(
      environment, {.n_step = n, .frame_stack = frames, .steps = {.reward_clip = 1.0}});
  constexpr int kItemsMax = 10'000;
  ReplayStore store({.tables = {{.name = "replay",
                                 .items = format.items(),
                                 .sampler = {.kind = SelectorKind::kFifo},
                                 .rate_limiter = RateLimiterOptions::MinSize(1),
                                 .items_max = kItemsMax,
                                 .times_sampled_max = 1}}});
  Table& table = store.table(0);
  LocalReplay replay(store);
  TransitionWriter writer(format,
                          {.replay = replay, .environments = kEnvironments, .chunk_steps = 5});
  Slab slab({.observation = environment.observation,
             .action = environment.action,
             .horizon = kHorizon,
             .columns = ColumnLayout(kEnvironments, 1, 1, 4)});
  RandomEnvironments environments(/*seed=*/11);
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  for (int i = 0; i < 60; ++i) {
    environments.Fill(slab);
    writer.Write(slab, deadline);
  }

  const int items = static_cast<int>(table.info().items);
  ASSERT_GT(items, 300);
  Sample sample;
  BatchGatherer gatherer(format.items(), items, 1);
  table.SampleInto({.count = items, .deadline = deadline}, sample);
  const auto columns = gatherer.Gather(sample);
  std::vector<std::vector<Transition>> stored(kEnvironments);
  for (int item = 0; item < items; ++item) {
    int of = 0;
    const Transition transition = ItemOf(format, columns, item, &of);
    stored[of].push_back(transition);
  }
  for (int of = 0; of < kEnvironments; ++of) {
    std::vector<Transition> expected;
    const std::vector<Row>& rows = environments.rows(of);
    for (std::size_t t = 0; t < rows.size(); ++t) {
      if (!rows[t].valid) continue;
      if (const auto transition = Follow(rows, t, n, frames)) expected.push_back(*transition);
    }
    ASSERT_EQ(stored[of].size(), expected.size()) << "environment " << of;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(stored[of][i], expected[i]) << "environment " << of << ", item " << i;
    }
  }
}

std::string NameOfSetting(const testing::TestParamInfo<Setting>& info) {
  const Setting& setting = info.param;
  return std::to_string(setting.n) + "Steps" + std::to_string(setting.frames) + "Frames" +
         (setting.image ? "WithNumbersBesideAnImage" : "");
}

INSTANTIATE_TEST_SUITE_P(StepsAndFrames, TransitionWriterTest,
                         testing::Values(Setting{1, 1}, Setting{3, 1}, Setting{1, 4}, Setting{5, 3},
                                         Setting{1, 1, true}, Setting{3, 4, true}),
                         NameOfSetting);

}  // namespace
}  // namespace menger::random_episodes
