#include "menger/runtime/cluster/refusal_log.h"

#include <fmt/format.h>

#include <utility>

namespace menger {

RefusalLog::RefusalLog(std::function<void(std::string_view line)> write)
    : write_(std::move(write)) {}

void RefusalLog::Add(std::int64_t now, const std::string& address, std::string_view why) {
  const std::lock_guard lock(mutex_);
  EndMinute(now);
  if (written_ >= kWrittenMax) {
    ++left_out_;
    last_ = address;
    return;
  }
  if (written_++ == 0) ends_at_ = now + kMinute;
  write_(fmt::format("who connected from {} was turned away: {}", address, why));
}

void RefusalLog::Tend(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  EndMinute(now);
}

void RefusalLog::EndMinute(std::int64_t now) {
  if (written_ == 0 || now < ends_at_) return;
  written_ = 0;
  if (left_out_ == 0) return;
  write_(fmt::format("{} more connection{} turned away within a minute, the last from {}",
                     left_out_, left_out_ == 1 ? " was" : "s were", last_));
  left_out_ = 0;
}

}  // namespace menger
