#include "menger/training/roles/collector_role.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::nanoseconds kForOthers =
    std::chrono::milliseconds(2);  // Until another look.

}  // namespace

void EndedEpisodes::Add(const EndedEpisodes& others) {
  count += others.count;
  last.insert(last.end(), others.last.begin(), others.last.end());
  if (last.size() > kLastMax) last.erase(last.begin(), last.end() - kLastMax);
  AddUp(metrics, others.metrics);
}

CollectorRole::CollectorRole(CollectorShare share, std::unique_ptr<Collector> collector,
                             std::unique_ptr<SlabWriter> writer, RunCounts& counts,
                             std::int64_t steps_max, MomentsOf moments_of)
    : share_(std::move(share)),
      counts_(counts),
      under_way_(counts.under_way.at(share_.index)),
      steps_max_(steps_max),
      moments_of_(std::move(moments_of)),
      writer_(std::move(writer)),
      collector_(std::move(collector)) {
  under_way_ = 0;
}

Advanced CollectorRole::Advance(const Deadline& deadline) {
  if (slab_ != nullptr) {
    Write(deadline);
    return Advanced::WaitingFor("room in replay");
  }
  // Before the steps are looked at, which they become.
  const std::int64_t others = counts_.under_way_but_for(share_.index, share_.collectors);
  const std::int64_t left = steps_max_ - counts_.steps;
  if (left <= 0) return Advanced::Done();
  if (left <= others) {
    std::this_thread::sleep_for(std::min(deadline.remaining(), kForOthers));
    return Advanced::WaitingFor("other collectors");
  }
  const std::int64_t rows = std::min<std::int64_t>(
      share_.horizon, (left - others + share_.environments - 1) / share_.environments);
  under_way_ = rows * share_.environments;
  slab_ = &collector_->Collect(static_cast<int>(rows));
  CountEpisodes();
  if (moments_of_) {
    const BatchMoments moments = moments_of_(*slab_);
    const std::lock_guard lock(mutex_);
    moments_.Add(moments);
  }
  Write(Deadline::After({}));
  return Advanced::Worked();
}

void CollectorRole::Write(const Deadline& deadline) {
  try {
    writer_->Write(*slab_, deadline);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kDeadlineExceeded) return;
    throw;
  }
  const std::int64_t steps = ValidSteps(*std::exchange(slab_, nullptr));
  written_ += steps;
  counts_.steps += steps;
  under_way_ = 0;
}

void CollectorRole::CountEpisodes() {
  const std::span<const EpisodeResult> ended = collector_->episodes();
  if (ended.empty()) return;
  const std::vector<EnvironmentMetric> told = collector_->TakeMetrics();
  const std::lock_guard lock(mutex_);
  episodes_.Add(
      {.count = std::ssize(ended), .last = {ended.begin(), ended.end()}, .metrics = told});
}

BatchMoments CollectorRole::TakeMoments() {
  const std::lock_guard lock(mutex_);
  return std::exchange(moments_, {});
}

EndedEpisodes CollectorRole::TakeEpisodes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(episodes_, {});
}

}  // namespace menger
