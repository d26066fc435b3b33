#include "menger/training/roles/collector_role.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/base/error.h"

namespace menger {

CollectorRole::CollectorRole(std::string name, std::unique_ptr<Collector> collector,
                             int environments, std::unique_ptr<SlabWriter> writer,
                             RunCounts& counts, std::int64_t steps_max)
    : name_(std::move(name)),
      environments_(environments),
      counts_(counts),
      steps_max_(steps_max),
      writer_(std::move(writer)),
      collector_(std::move(collector)) {}

Advanced CollectorRole::Advance(const Deadline& deadline) {
  if (slab_ != nullptr) {
    Write(deadline);
    return Advanced::WaitingFor("room in replay");
  }
  const std::int64_t left = steps_max_ - counts_.steps;
  if (left <= 0) return Advanced::Done();
  const std::int64_t rows = (left + environments_ - 1) / environments_;
  constexpr std::int64_t kRowsMax = std::numeric_limits<int>::max();
  slab_ = &collector_->Collect(static_cast<int>(std::min(rows, kRowsMax)));
  CountEpisodes();
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
}

void CollectorRole::CountEpisodes() {
  const std::span<const EpisodeResult> ended = collector_->episodes();
  if (ended.empty()) return;
  const std::vector<EnvironmentMetric> told = collector_->TakeMetrics();
  const std::lock_guard lock(mutex_);
  AddUp(episodes_.metrics, told);
  episodes_.count += std::ssize(ended);
  std::vector<EpisodeResult>& last = episodes_.last;
  last.insert(last.end(), ended.begin(), ended.end());
  if (last.size() > EndedEpisodes::kLastMax) {
    last.erase(last.begin(), last.end() - EndedEpisodes::kLastMax);
  }
}

EndedEpisodes CollectorRole::TakeEpisodes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(episodes_, {});
}

}  // namespace menger
