#include "menger/training/roles/inference_role.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace menger {

InferenceRole::InferenceRole(const InferenceRoleOptions& options, std::unique_ptr<Policy> policy,
                             InferenceBoard& board, FindSlab find)
    : options_(options),
      policy_(std::move(policy)),
      board_(board),
      find_(std::move(find)),
      is_taken_(static_cast<std::size_t>(options.collectors)) {
  board_.closed = false;
}

Advanced InferenceRole::Advance(const Deadline& deadline) {
  const std::uint32_t rung = board_.bell.value();  // Before the look: who asks later rings again.
  TakeReady();
  if (askers_.empty()) {
    board_.bell.TryWaitFor(rung + 1, deadline.remaining());
    return Advanced::WaitingFor("groups to act on");
  }
  if (!more_until_) more_until_ = Deadline::After(options_.wait);
  if (!IsFull() && !more_until_->expired()) {
    board_.bell.TryWaitFor(rung + 1, std::min(deadline.remaining(), more_until_->remaining()));
    return Advanced::WaitingFor("more groups for a batch");
  }
  more_until_.reset();
  Answer();
  return Advanced::Worked();
}

bool InferenceRole::IsFull() const {
  return std::ssize(askers_) == options_.collectors ||
         (options_.positions_max > 0 && taken_ >= options_.positions_max);
}

void InferenceRole::TakeReady() {
  const int most =
      options_.positions_max == 0 ? std::numeric_limits<int>::max() : options_.positions_max;
  for (int i = 0; i < options_.collectors && taken_ < most; ++i) {
    const int collector = (next_ + i) % options_.collectors;
    InferenceDesk& desk = board_.desks[static_cast<std::size_t>(collector)];
    if (is_taken_[static_cast<std::size_t>(collector)] != 0 || !desk.open()) continue;
    is_taken_[static_cast<std::size_t>(collector)] = 1;
    askers_.push_back(collector);
    Slab* const slab = find_(collector, desk.slab);
    if (slab == nullptr) continue;
    // Where it is the asker's own, its workers read these meanwhile.
    if (slab->horizon() != desk.horizon) slab->set_horizon(desk.horizon);
    if (slab->first_step() != desk.first_step) slab->set_first_step(desk.first_step);
    slices_.push_back({.slab = slab, .row = desk.row, .positions = desk.positions});
    taken_ += desk.positions.count;
  }
  if (!askers_.empty()) next_ = (askers_.back() + 1) % options_.collectors;
}

void InferenceRole::Answer() {
  if (!slices_.empty()) {
    try {
      policy_->Refresh();
      policy_->Act(slices_);
    } catch (...) {
      board_.closed = true;
      throw;
    }
    ++batches_;
  }
  positions_ += taken_;  // Before those who asked look.
  for (const int collector : askers_) {
    is_taken_[static_cast<std::size_t>(collector)] = 0;
    board_.desks[static_cast<std::size_t>(collector)].answered.Advance();
  }
  askers_.clear();
  slices_.clear();
  taken_ = 0;
}

}  // namespace menger
