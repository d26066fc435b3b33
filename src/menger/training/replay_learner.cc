#include "menger/training/replay_learner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/base/random.h"
#include "menger/base/thread.h"
#include "menger/replay/chunks/chunk_store.h"
#include "menger/training/metric_watch.h"

namespace menger {
namespace {

constexpr std::uint64_t kDrawStream = 3;  // Spawned from the run's seed: which items are drawn.
constexpr double kPriorityMin = 1e-6;  // An item without an error may still be drawn (Schaul et al.
                                       // 2016, section 3.3).
constexpr double kMillion = 1e6;
constexpr const char* kUpdates = "updates";  // Metrics of the learner's own.
constexpr const char* kItems = "replay_items";
// Nothing else waits here for anybody: this says that something is broken.
constexpr std::chrono::seconds kPatience(60);

// A chunk is freed when all its steps are too old. Where many environments share a small capacity,
// chunks shrink: so what is kept in vain stays small beside it.
int ChunkSteps(const ReplayOptions& options, int environments) {
  const std::int64_t share = options.capacity / environments;
  return static_cast<int>(std::clamp<std::int64_t>(
      share / 4, std::min<std::int64_t>(8, options.chunk_steps), options.chunk_steps));
}

// Nobody chose this bound, so a machine that has less is no error.
std::size_t AtMost(std::size_t bytes, std::size_t available) {
  if (bytes <= available) return bytes;
  LogWarning(
      "replay.capacity may need {} of memory, and gets {}, three quarters of what this process can "
      "have: once that is full, older steps go (replay.bytes_max sets another bound)",
      MemoryText(static_cast<double>(bytes)), MemoryText(static_cast<double>(available)));
  return available;
}

// What is left for steps, of three quarters: the rest is for all else. Throws Unavailable where
// what was chosen cannot be.
std::size_t MemoryForSteps(const ReplayOptions& options, const TableOptions& table) {
  const double items =
      static_cast<double>(table.items_max) * static_cast<double>(table.ItemBytes());
  RequireMemory(items,
                fmt::format("replay (replay.capacity = {}, without its steps)", options.capacity));
  RequireMemory(items + static_cast<double>(options.bytes_max),
                fmt::format("replay (replay.capacity = {}, replay.bytes_max = {})",
                            options.capacity, options.bytes_max));
  return static_cast<std::size_t>((static_cast<double>(MemoryLimit()) - items) / 4 * 3);
}

ReplayStoreOptions StoreFor(const ReplayOptions& options, const ReplayLearnerContext& context,
                            const ReplayAlgorithm& algorithm) {
  options.Check();
  TableOptions table{.name = "replay",
                     .items = algorithm.items(),
                     .rate_limiter = RateLimiterOptions::MinSize(options.min_size),
                     .items_max = options.capacity,
                     .bytes_max = static_cast<std::size_t>(options.bytes_max),
                     .seed = SeedSequence(context.seed).Spawn(kDrawStream).GenerateState64(1)[0]};
  if (options.sampler == "prioritised") {
    table.sampler = {.kind = SelectorKind::kPrioritised,
                     .exponent = options.priority_exponent,
                     .stratified = options.stratified};
  }
  const std::size_t available = MemoryForSteps(options, table);
  const int steps = ChunkSteps(options, context.environments);
  const std::size_t chunk = ChunkLayout(table.items.steps, steps).bytes();
  const std::int64_t writers = (4 + 128 / steps) * std::int64_t{context.environments};
  if (options.bytes_max == 0) {
    // Every episode adds a step, its final observation: twice as many steps as decisions is the
    // worst case, episodes of one step. Memory is taken as it is used.
    table.bytes_max =
        AtMost(chunk * static_cast<std::size_t>(2 * options.capacity / steps + writers), available);
  }
  return {.tables = {std::move(table)}, .writer_bytes = chunk * static_cast<std::size_t>(writers)};
}

std::chrono::nanoseconds Patience(const ReplayOptions& options) {
  if (options.address.empty()) return kPatience;
  return kPatience + std::chrono::nanoseconds(static_cast<std::int64_t>(options.patience * 1e9));
}

bool Prefetches(const ReplayOptions& options, const ReplayLearnerContext& context) {
  if (options.prefetch != "auto") return options.prefetch == "on";
  return options.sampler == "uniform" && (context.on_device || AvailableCpus() > context.threads);
}

}  // namespace

ReplayLearner::ReplayLearner(const ReplayOptions& options, const ReplayLearnerContext& context,
                             ReplayAlgorithm& algorithm)
    : options_(options),
      algorithm_(algorithm),
      replay_(options.address.empty() ? RunReplay(StoreFor(options, context, algorithm))
                                      : RunReplay(options, algorithm.items())),
      patience_(Patience(options)),
      writer_(algorithm.MakeWriter({.replay = replay_.client(),
                                    .table = replay_.table(),
                                    .environments = context.environments,
                                    .chunk_steps = ChunkSteps(options, context.environments),
                                    .compression = options.compression == "automatic"
                                                       ? Compression::kAutomatic
                                                       : Compression::kNone})),
      prefetches_(Prefetches(options, context)),
      batches_(replay_.client().NewSampler(replay_.table()),
               {.items_max = static_cast<int>(options.batch_size),
                .threads = prefetches_ ? 1 : context.threads,
                .in_turn = !prefetches_,
                .allocate = [&algorithm](std::size_t bytes) {
                  return algorithm.AllocateBatch(bytes);
                }}) {}

Metrics ReplayLearner::Consume(Slab& slab, UpdateRule& update, double progress) {
  algorithm_.SetProgress(progress);
  writer_->Write(slab, Deadline::After(patience_));
  const TableInfo table = replay_.client().info(replay_.table());
  const std::int64_t per_update = options_.batch_size * static_cast<std::int64_t>(kMillion);
  if (table.items >= options_.min_size) {
    const std::int64_t samples = ValidSteps(slab);
    counters_.samples += samples;
    counters_.owed_millionths += samples * std::llround(options_.training_intensity * kMillion);
  } else if (table.evicted > 0) {
    throw FailedPrecondition(
        "replay.bytes_max = {} has room for {} steps, fewer than replay.min_size = {}: learning "
        "would never start",
        options_.bytes_max, table.items, options_.min_size);
  }

  const std::vector<std::string> names = algorithm_.metric_names();
  Metrics means;
  for (const std::string& name : names) means.emplace_back(name, 0.0);
  const std::int64_t due = counters_.owed_millionths / per_update;
  const std::int64_t updates = update.Agree(due);
  if (due > 0) Draw();
  for (std::int64_t i = 0; i < updates; ++i) {
    const Metrics metrics = i < due ? LearnOnce(/*draw_next=*/i + 1 < due, update, progress)
                                    : algorithm_.Learn(/*batch=*/{}, update, progress);
    CheckMetrics(metrics, names);
    for (std::size_t k = 0; k < means.size(); ++k) means[k].second += metrics[k].second;
  }
  counters_.owed_millionths -= due * per_update;
  batches_.Release();  // Before the next slab is written: chunks that go are used again.
  algorithm_.Observe(slab, update);
  for (auto& [name, value] : means) {
    value = updates == 0 ? std::numeric_limits<double>::quiet_NaN()
                         : value / static_cast<double>(updates);
  }
  means.emplace_back(kUpdates, static_cast<double>(updates));
  means.emplace_back(kItems, static_cast<double>(table.items));
  updated_ = updates > 0;
  return means;
}

std::vector<std::string> ReplayLearner::metric_names() const {
  std::vector<std::string> names = algorithm_.metric_names();
  names.insert(names.end(), {kUpdates, kItems});
  return names;
}

void ReplayLearner::Draw() {
  batches_.Draw(
      {.count = static_cast<int>(options_.batch_size), .deadline = Deadline::After(patience_)});
}

Metrics ReplayLearner::LearnOnce(bool draw_next, UpdateRule& update, double progress) {
  const ReplayBatch batch = batches_.Take(Deadline::After(patience_));
  if (draw_next && prefetches_) Draw();
  Metrics metrics = algorithm_.Learn(batch, update, progress);
  ++counters_.updates;
  if (options_.sampler == "prioritised") UpdatePriorities(batch.items);
  if (draw_next && !prefetches_) Draw();
  return metrics;
}

void ReplayLearner::UpdatePriorities(std::span<const SampledItem> items) {
  const std::span<const float> priorities = algorithm_.priorities();
  if (priorities.size() != items.size()) {
    throw Internal(
        "priorities() has {} numbers after a batch of {} items; replay.sampler = prioritised needs "
        "one for each",
        priorities.size(), items.size());
  }
  priorities_.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    priorities_[i] = {.key = items[i].key, .priority = priorities[i] + kPriorityMin};
  }
  replay_.client().UpdatePriorities(replay_.table(), priorities_);
}

void ReplayLearner::Save(ArchiveWriter& archive) const {
  archive.Write("counters", counters_);
  replay_.Save(*writer_, archive);
}

void ReplayLearner::Load(ArchiveReader& archive) {
  archive.Read("counters", counters_);
  replay_.Load(*writer_, archive);
}

}  // namespace menger
