#include "menger/replay/trajectory_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/random.h"
#include "menger/replay/client/batch_gatherer.h"
#include "menger/replay/sample.h"
#include "menger/replay/trajectory_testing.h"

namespace menger {
namespace {

using namespace testing_trajectories;

// Random calls on everything, against streams of which each step is known by its number.
class RandomCalls {
 public:
  RandomCalls(std::uint64_t seed, const WriterOptions& options)
      : random_(Random::FromSeed(seed)),
        history_(options.history),
        store_({.bytes_max = 40 * ChunkBytes(options.chunk_steps)}),
        table_(Options(/*items_max=*/12), store_),
        gatherer_(Items(), 8, 1) {
    for (int i = 0; i < 3; ++i) {
      WriterOptions impatient = options;
      impatient.room_wait_max = std::chrono::seconds(0);
      writers_.push_back(std::make_unique<TrajectoryWriter>(Steps(), impatient, store_));
    }
  }

  void Call() {
    const auto stream = static_cast<int>(random_.Integers(0, 3));
    switch (random_.Integers(0, 8)) {
      case 0:
        return writers_[stream]->Flush(Later());
      case 1:
        return SampleSome();
      case 2:
      case 3:
        return AddItem(stream);
      default:
        return AppendStep(stream);
    }
  }

  void CheckHeld() {
    while (!held_.empty()) CheckOldest();
  }

  // Nothing is left over when all owners have gone.
  std::uint32_t ChunksOfTableAlone() {
    writers_.clear();
    CheckHeld();
    std::vector<ItemKey> keys;
    while (table_.info().items > 0) {
      Sample sample;
      table_.SampleInto({.deadline = Later()}, sample);
      keys = {sample.items()[0].key};
      table_.Delete(keys);
    }
    return store_.chunks();
  }

  int items() const { return static_cast<int>(items_.size()); }

 private:
  struct KnownItem {
    std::int64_t base;
    std::vector<StepRange> ranges;
  };
  static constexpr std::int64_t kStream = 1'000'000;  // Numbers of a stream's steps.

  void AppendStep(int stream) {
    const std::int64_t steps = writers_[stream]->steps();
    const std::int64_t number = stream * kStream + steps;
    try {
      Append(*writers_[stream], number, static_cast<std::uint64_t>(number));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kUnavailable);
      ASSERT_EQ(writers_[stream]->steps(), steps);
      CheckHeld();
      for (const auto& writer : writers_) writer->Flush(Later());
    }
  }

  void AddItem(int stream) {
    const std::int64_t steps = writers_[stream]->steps();
    const std::int64_t oldest = std::max<std::int64_t>(0, steps - history_);
    if (steps == 0) return;
    std::vector<StepRange> ranges;
    for (const ItemColumn& column : Items().columns) {
      const std::int64_t first = random_.Integers(oldest, steps);
      const std::int64_t most = std::min<std::int64_t>(column.rows, steps - first);
      ranges.push_back({first, static_cast<int>(random_.Integers(1, most + 1))});
    }
    // The priority tells which item it is.
    writers_[stream]->Add(table_, static_cast<double>(items_.size()), ranges);
    items_.push_back({stream * kStream, ranges});
  }

  void SampleSome() {
    if (table_.info().items == 0) return;
    const auto count = static_cast<int>(random_.Integers(1, 9));
    held_.push_back(std::make_unique<Sample>());
    table_.SampleInto({.count = count, .deadline = Later()}, *held_.back());
    ASSERT_EQ(held_.back()->size(), count);
    if (held_.size() > 4) CheckOldest();
  }

  // Long after it was drawn, when tables and writers have dropped most of its chunks.
  void CheckOldest() {
    const std::unique_ptr<Sample> sample = std::move(held_.front());
    held_.pop_front();
    const auto batch = gatherer_.Gather(*sample);
    for (int i = 0; i < sample->size(); ++i) {
      const SampledItem& drawn = sample->items()[i];
      const KnownItem& known = items_[static_cast<std::size_t>(drawn.priority)];
      ASSERT_EQ(Gathered(batch, i), Expected(known.base, known.ranges));
      // Versions are the numbers of steps.
      std::int64_t first = known.ranges[0].first;
      std::int64_t last = 0;
      for (std::size_t c = 0; c < known.ranges.size(); ++c) {
        const StepRange& range = known.ranges[c];
        ASSERT_EQ(batch[c].rows[i], range.count);
        first = std::min(first, range.first);
        last = std::max(last, range.first + range.count - 1);
      }
      ASSERT_EQ(drawn.versions.first, static_cast<std::uint64_t>(known.base + first));
      ASSERT_EQ(drawn.versions.last, static_cast<std::uint64_t>(known.base + last));
    }
  }

  Random random_;
  const int history_;
  ChunkStore store_;
  Table table_;
  BatchGatherer gatherer_;
  std::vector<std::unique_ptr<TrajectoryWriter>> writers_;
  std::vector<KnownItem> items_;
  std::deque<std::unique_ptr<Sample>> held_;
};

TEST(TrajectoryWriterTest, RandomCallsShowWhatANaiveModelShows) {
  const std::vector<WriterOptions> settings = {
      {.chunk_steps = 1, .history = 1},   {.chunk_steps = 1, .history = 9},
      {.chunk_steps = 3, .history = 7},   {.chunk_steps = 7, .history = 3},
      {.chunk_steps = 16, .history = 16}, {.chunk_steps = 5, .history = 40}};
  for (std::uint64_t seed = 0; seed < 2 * settings.size(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCalls calls(seed, settings[seed % settings.size()]);
    for (int i = 0; i < 1000; ++i) {
      calls.Call();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(calls.items(), 100);
    EXPECT_EQ(calls.ChunksOfTableAlone(), 0U);
  }
}

// Writers, each with its own stream, and readers share two tables; whoever reads a row checks that
// it is the one that its item names.
TEST(TrajectoryWriterTest, ManyThreadsWriteAndReadWholeItems) {
  constexpr int kThreads = 3;  // Of each kind.
  constexpr int kSteps = 1500;
  ChunkStore store({.bytes_max = 400 * ChunkBytes(8)});
  Table left(Options(/*items_max=*/64), store);
  Table right(Options(/*items_max=*/5), store);
  std::atomic<int> writing = kThreads;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      TrajectoryWriter writer(Steps(), {.chunk_steps = 8, .history = 12}, store);
      for (int i = 0; i < kSteps; ++i) {
        const std::int64_t step = Append(writer, thread * 100'000 + i);
        const std::int64_t first = std::max<std::int64_t>(0, step - 5);
        const int rows = static_cast<int>(step - first + 1);
        const int stack = std::min(rows, 4);
        const std::vector<StepRange> ranges = {
            {first, stack}, {first, rows}, {step - stack + 1, stack}};
        writer.Add(left, 1.0, ranges);
        if (i % 3 == 0) writer.Add(right, 1.0, ranges);
        if (i % 2 == 0) writer.Flush(Later());
      }
      writer.Flush(Later());
      --writing;
    });
    threads.emplace_back([&, thread] {
      BatchGatherer gatherer(Items(), 8, 1);
      Sample sample;
      for (bool last = false; !last;) {
        last = writing == 0;
        (thread % 2 == 0 ? left : right).SampleInto({.count = 8, .deadline = Later()}, sample);
        const auto batch = gatherer.Gather(sample);
        for (int i = 0; i < sample.size(); ++i) {
          std::int64_t number = 0;
          std::memcpy(&number, batch[1].data + batch[1].item_bytes * static_cast<std::size_t>(i),
                      sizeof(number));
          const int rows = batch[1].rows[i];
          const int stack = std::min(rows, 4);
          const auto expected = Expected(number, {{0, stack}, {0, rows}, {rows - stack, stack}});
          if (Gathered(batch, i) != expected) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(left.info().inserts, kThreads * kSteps);
}

}  // namespace
}  // namespace menger
