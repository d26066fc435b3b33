#include "menger/algorithms/sequence_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/random_episodes.h"
#include "menger/base/error.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/client/local_replay.h"
#include "menger/replay/replay_store.h"

namespace menger::random_episodes {
namespace {

// An item as it should be, without padding.
struct Sequence {
  std::vector<float> observations;
  std::vector<std::int64_t> actions;
  std::vector<float> rewards;
  std::uint8_t terminated = 0;
  float state = 0;
  std::vector<std::uint8_t> masks;  // Of action 0.

  bool operator==(const Sequence&) const = default;
};

// An episode, or what was seen of one: one observation and mask more than decisions.
struct Episode {
  std::vector<Row> decisions;
  std::vector<float> observations;
  std::vector<std::uint8_t> masks;
  bool ended = false;
};

// The episodes of an environment's rows, read off one by one. What was open when a collector was
// made anew has no end.
std::vector<Episode> EpisodesOf(const std::vector<Row>& rows) {
  std::vector<Episode> episodes;
  bool open = false;
  for (const Row& row : rows) {
    if (row.is_first) open = false;
    if (!open && !row.valid) continue;
    if (!open) episodes.emplace_back();
    Episode& episode = episodes.back();
    episode.observations.push_back(row.observation);
    episode.masks.push_back(row.mask);
    open = row.valid && !row.terminated && !row.truncated;
    if (!row.valid) {
      episode.ended = true;
      continue;
    }
    episode.decisions.push_back(row);
    if (open) continue;
    episode.ended = true;
    episode.observations.push_back(row.final_observation);
    episode.masks.push_back(row.final_mask);
  }
  return episodes;
}

// The items of an episode: windows one after the other, as far as they go.
std::vector<Sequence> SequencesOf(const Episode& episode, const SequenceOptions& options,
                                  bool stateful) {
  std::vector<Sequence> sequences;
  const auto known = static_cast<std::int64_t>(episode.observations.size());
  std::int64_t taught = 0;  // Decisions before this one are in a window already.
  for (std::int64_t window = 0; window + 1 < known; window += options.length - options.overlap) {
    const std::int64_t whole = window + options.length + options.n_step - 1;
    if (!episode.ended && whole >= known) break;
    if (episode.ended && taught >= known - 1) break;
    const std::int64_t last = std::min(whole, known - 1);
    const std::int64_t begin = std::max<std::int64_t>(0, window - options.burn_in);
    taught = window + options.length;
    Sequence sequence;
    for (std::int64_t i = begin; i <= last; ++i) {
      sequence.observations.push_back(episode.observations[i]);
      if (i >= window) sequence.masks.push_back(episode.masks[i]);
    }
    for (std::int64_t i = window; i < last; ++i) {
      const Row& row = episode.decisions[i];
      if (i < taught) sequence.actions.push_back(row.action);
      sequence.rewards.push_back(std::clamp(static_cast<float>(row.reward), -1.0F, 1.0F));
    }
    sequence.terminated = episode.decisions[last - 1].terminated ? 1 : 0;
    if (stateful && begin > 0) sequence.state = episode.decisions[begin].state;
    sequences.push_back(sequence);
  }
  return sequences;
}

Sequence ItemOf(const SequenceFormat& format, std::span<const BatchColumn> columns, int item,
                int* environment) {
  const auto rows = [&](int column) { return columns[column].rows[item]; };
  const auto at = [&]<typename T>(int column, T*) {
    return reinterpret_cast<const T*>(columns[column].data +
                                      static_cast<std::size_t>(item) * columns[column].item_bytes);
  };
  Sequence result;
  const bool image = format.has_vector();
  const float* const observation = at(image ? format.vector_column() : SequenceFormat::kObservation,
                                      static_cast<float*>(nullptr));
  *environment = static_cast<int>(observation[0]);
  for (int row = 0; row < rows(SequenceFormat::kObservation); ++row) {
    result.observations.push_back(observation[2 * row + 1]);
    if (!image) continue;
    EXPECT_EQ(at(SequenceFormat::kObservation, static_cast<std::uint8_t*>(nullptr))[row],
              PixelOf(observation[2 * row + 1]));
  }
  const auto* const actions = at(SequenceFormat::kAction, static_cast<std::int64_t*>(nullptr));
  result.actions.assign(actions, actions + rows(SequenceFormat::kAction));
  const float* const rewards = at(SequenceFormat::kReward, static_cast<float*>(nullptr));
  result.rewards.assign(rewards, rewards + rows(SequenceFormat::kReward));
  result.terminated = *at(SequenceFormat::kTerminated, static_cast<std::uint8_t*>(nullptr));
  if (format.has_state()) result.state = *at(format.state_column(), static_cast<float*>(nullptr));
  const auto* const masks = at(format.mask_column(), static_cast<std::uint8_t*>(nullptr));
  for (int row = 0; row < rows(format.mask_column()); ++row) {
    result.masks.push_back(masks[kActions * row]);
  }
  return result;
}

struct SequenceSetting {
  SequenceOptions options;
  bool stateful = true;
  bool image = false;
};

AlgorithmContext ContextOf(const SequenceSetting& setting) {
  AlgorithmContext context{.environment = MaskedSpec(setting.image)};
  if (setting.image) context.network.kind = "a3c_cnn_lstm";
  context.transforms.apply = {"clip_reward"};
  context.transforms.reward_clip = 1;
  return context;
}

// What replay holds after some slabs, in the order of writing, gathered.
struct WrittenSequences {
  WrittenSequences(const SequenceSetting& setting, const SequenceFormat& format,
                   RandomEnvironments& environments)
      : store({.tables = {{.name = "replay",
                           .items = format.items(),
                           .sampler = {.kind = SelectorKind::kFifo},
                           .rate_limiter = RateLimiterOptions::MinSize(1),
                           .items_max = 10'000,
                           .times_sampled_max = 1}}}) {
    LocalReplay replay(store);
    SequenceWriter writer(format,
                          {.replay = replay, .environments = kEnvironments, .chunk_steps = 5});
    const EnvironmentSpec environment = MaskedSpec(setting.image);
    Slab slab(
        {.observation = environment.observation,
         .state = setting.stateful ? Spec({LeafSpec::Scalar("state", DataType::kFloat32)}) : Spec(),
         .action = environment.action,
         .horizon = kHorizon,
         .columns = ColumnLayout(kEnvironments, 1, 1, 4)});
    const Deadline deadline = Deadline::After(std::chrono::seconds(60));
    for (int i = 0; i < 90; ++i) {
      environments.Fill(slab);
      writer.Write(slab, deadline);
    }
    items = static_cast<int>(store.table(0).info().items);
    gatherer.emplace(format.items(), items, 1);
    store.table(0).SampleInto({.count = items, .deadline = deadline}, sample);
    columns = gatherer->Gather(sample);
  }

  ReplayStore store;
  Sample sample;
  std::optional<BatchGatherer> gatherer;
  int items = 0;
  std::span<const BatchColumn> columns;
};

class SequenceWriterTest : public testing::TestWithParam<SequenceSetting> {};

TEST_P(SequenceWriterTest, EpisodesAreCutIntoOverlappingWindowsWhateverEndsThemAndHoweverSlabsDo) {
  const SequenceSetting& setting = GetParam();
  const SequenceFormat format(setting.options, ContextOf(setting), setting.stateful ? 1 : 0);
  RandomEnvironments environments(/*seed=*/11);
  const WrittenSequences written(setting, format, environments);
  ASSERT_GT(written.items, 200);
  std::vector<std::vector<Sequence>> stored(kEnvironments);
  for (int item = 0; item < written.items; ++item) {
    int of = 0;
    const Sequence sequence = ItemOf(format, written.columns, item, &of);
    stored[of].push_back(sequence);
  }
  for (int of = 0; of < kEnvironments; ++of) {
    std::vector<Sequence> expected;
    for (const Episode& episode : EpisodesOf(environments.rows(of))) {
      const auto sequences = SequencesOf(episode, setting.options, setting.stateful);
      expected.insert(expected.end(), sequences.begin(), sequences.end());
    }
    ASSERT_EQ(stored[of].size(), expected.size()) << "environment " << of;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(stored[of][i], expected[i]) << "environment " << of << ", item " << i;
    }
  }
}

// What an item lacks is zeros behind it.
TEST_P(SequenceWriterTest, MissingRowsAreZeros) {
  const SequenceSetting& setting = GetParam();
  const SequenceFormat format(setting.options, ContextOf(setting), setting.stateful ? 1 : 0);
  RandomEnvironments environments(/*seed=*/12);
  const WrittenSequences written(setting, format, environments);
  int lacking = 0;
  for (std::size_t c = 0; c < written.columns.size(); ++c) {
    const BatchColumn& column = written.columns[c];
    const std::size_t rows = format.items().columns[c].rows;
    for (int item = 0; item < written.items; ++item) {
      const std::size_t missing = rows - column.rows[item];
      const std::byte* const end =
          column.data + column.item_bytes * (static_cast<std::size_t>(item) + 1);
      lacking += missing > 0 ? 1 : 0;
      EXPECT_EQ(std::count(end - missing * (column.item_bytes / rows), end, std::byte{0}),
                static_cast<std::ptrdiff_t>(missing * (column.item_bytes / rows)));
    }
  }
  EXPECT_GT(lacking, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SequenceWriterTest,
    testing::Values(SequenceSetting{{.length = 3, .overlap = 1, .burn_in = 2, .n_step = 2}},
                    SequenceSetting{{.length = 4, .overlap = 2, .burn_in = 0, .n_step = 1}},
                    SequenceSetting{{.length = 2, .overlap = 0, .burn_in = 5, .n_step = 3}},
                    SequenceSetting{{.length = 3, .overlap = 2, .burn_in = 3, .n_step = 1}, false},
                    SequenceSetting{
                        {.length = 3, .overlap = 1, .burn_in = 2, .n_step = 2}, true, true}),
    [](const auto& info) { return "Setting" + std::to_string(info.index); });

TEST(SequenceFormatTest, WhatDoesNotFitIsRefused) {
  const auto text_of = [](const SequenceOptions& options, const AlgorithmContext& context) {
    try {
      const SequenceFormat format(options, context, 1);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  AlgorithmContext context = ContextOf({});
  EXPECT_EQ(text_of({}, context), "not refused");
  EXPECT_NE(text_of({.length = 8, .overlap = 8}, context).find("sequence_overlap = 8"),
            std::string::npos);
  context.transforms.frame_stack = 4;
  EXPECT_NE(text_of({}, context).find("transforms.frame_stack = 4"), std::string::npos);
}

}  // namespace
}  // namespace menger::random_episodes
