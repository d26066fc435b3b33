#include "menger/runtime/channel/doorbell.h"

#include "menger/base/futex.h"

namespace menger {
namespace {

std::uint32_t SleepersOf(std::uint32_t role) { return 1U << role; }

}  // namespace

bool Doorbell::Wait(DoorbellRole role, std::uint32_t seen, const Deadline& deadline,
                    SpinKind spin) {
  const auto index = static_cast<std::uint32_t>(role);
  if (Heard(index, seen)) return true;
  if (deadline.expired()) return false;
  const auto sleep = [&] { return Sleep(index, seen, deadline); };
  if (listener() != index) return sleep();
  return spins_[index].Wait([&] { return Heard(index, seen); }, sleep, spin);
}

bool Doorbell::Sleep(std::uint32_t role, std::uint32_t seen, const Deadline& deadline) {
  asleep_[role].store(1, std::memory_order_seq_cst);
  bool heard = false;
  for (;;) {
    const std::uint32_t now = value();
    heard = now != seen && listener() == role;
    if (heard || deadline.expired()) break;
    FutexWait(sequence_, now, deadline, SleepersOf(role));
  }
  asleep_[role].store(0, std::memory_order_relaxed);
  return heard;
}

void Doorbell::Wake(std::uint32_t role) {
  spins_[role].Woken();
  FutexWake(sequence_, SleepersOf(role));
}

}  // namespace menger
