#include "menger/training/roles/remote_policy.h"

#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kPatience{60};  // For a process of inference to be replaced, too.
constexpr std::chrono::seconds kLook{1};

}  // namespace

RemotePolicy::RemotePolicy(const PolicySpec& spec, InferenceBoard& board, int collector,
                           ShowSlab show, std::function<void()> while_asking)
    : spec_(spec),
      board_(board),
      desk_(board.desks.at(static_cast<std::size_t>(collector))),
      show_(std::move(show)),
      while_asking_(std::move(while_asking)) {
  spec_.waits_for_device = true;  // It leaves its core to others meanwhile.
  AwaitAnswer();
}

void RemotePolicy::Act(std::span<const ActSlice> slices) {
  for (const ActSlice& slice : slices) {
    Ask(slice);
    AwaitAnswer();
  }
}

void RemotePolicy::Ask(const ActSlice& slice) {
  if (slice.slab != shown_) {
    const std::uint32_t number = desk_.slab + 1;
    show_(*slice.slab, number);
    desk_.slab = number;
    shown_ = slice.slab;
  }
  desk_.row = slice.row;
  desk_.horizon = slice.slab->horizon();
  desk_.first_step = slice.slab->first_step();
  desk_.positions = slice.positions;
  desk_.asked.Advance();
  board_.bell.Advance();
}

void RemotePolicy::AwaitAnswer() {
  const std::uint32_t asked = desk_.asked.value();
  const Deadline deadline = Deadline::After(kPatience);
  const std::chrono::nanoseconds look = while_asking_ ? std::chrono::nanoseconds(0) : kLook;
  while (!desk_.answered.TryWaitFor(asked, look)) {
    if (while_asking_) while_asking_();
    if (board_.closed) throw Unavailable("inference has ended: nobody acts for this collector");
    if (deadline.expired()) {
      throw DeadlineExceeded("inference has not acted for this collector in {} s",
                             kPatience.count());
    }
  }
}

}  // namespace menger
