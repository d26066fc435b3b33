#include "menger/training/learning/replay_trainer.h"

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/base/version_distance.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kPatience(60);

bool Prefetches(const ReplayOptions& options, const ReplayLearnerContext& context) {
  if (options.prefetch != "auto") return options.prefetch == "on";
  return options.sampler == "uniform" && (context.on_device || AvailableCpus() > context.threads);
}

}  // namespace

std::chrono::nanoseconds ReplayPatience(const ReplayOptions& options) {
  if (options.address.empty()) return kPatience;
  return kPatience + std::chrono::nanoseconds(static_cast<std::int64_t>(options.patience * 1e9));
}

ReplayTrainer::ReplayTrainer(const ReplayOptions& options, const ReplayLearnerContext& context,
                             ReplayClient& client, int table, ReplayAlgorithm& algorithm)
    : prioritised_(options.sampler == "prioritised"),
      prefetches_(Prefetches(options, context)),
      count_(static_cast<int>(options.batch_size)),
      staleness_max_(context.staleness_max),
      patience_(ReplayPatience(options)),
      client_(client),
      table_(table),
      algorithm_(algorithm),
      batches_(client.NewSampler(table), {.items_max = count_,
                                          .threads = prefetches_ ? 1 : context.threads,
                                          .in_turn = !prefetches_,
                                          .allocate = [&algorithm](std::size_t bytes) {
                                            return algorithm.AllocateBatch(bytes);
                                          }}) {}

bool ReplayTrainer::Draw(const Deadline& deadline) {
  if (has_batch_) return true;
  try {
    version_ = static_cast<std::uint64_t>(algorithm_.publication().Latest()->version().packed());
    batches_.Draw({.count = count_,
                   .whole = true,
                   .deadline = deadline,
                   .version = version_,
                   .staleness_max = staleness_max_});
    has_batch_ = true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadlineExceeded) throw;
    why_none_ = error.what();
  }
  return has_batch_;
}

Metrics ReplayTrainer::Learn(bool draw_next, UpdateRule& update, double progress) {
  const ReplayBatch batch = batches_.Take(Deadline::After(patience_));
  has_batch_ = false;
  MeasureLag(batch.items);
  if (draw_next && prefetches_) Draw(Deadline::After({}));
  Metrics metrics = algorithm_.Learn(batch, update, progress);
  if (prioritised_) UpdatePriorities(batch.items);
  if (draw_next && !prefetches_) Draw(Deadline::After({}));
  return metrics;
}

void ReplayTrainer::MeasureLag(std::span<const SampledItem> items) {
  lag_ = {.items = std::ssize(items)};
  for (const SampledItem& item : items) {
    const std::uint64_t behind = VersionDistance(item.versions.first, version_);
    lag_.sum += static_cast<double>(behind);
    lag_.most = std::max(lag_.most, behind);
  }
}

void ReplayTrainer::UpdatePriorities(std::span<const SampledItem> items) {
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
  client_.UpdatePriorities(table_, priorities_);
}

}  // namespace menger
