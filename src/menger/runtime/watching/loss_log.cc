#include "menger/runtime/watching/loss_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace menger {
namespace {

constexpr std::int64_t kQuietNanoseconds = 10'000'000'000;
constexpr std::size_t kSubjectsMax = 256;  // That are kept quiet at once; others are written.
constexpr std::size_t kLossesMax = 32;
constexpr std::size_t kCausesMax = 63;

}  // namespace

LossLog::LossLog(std::function<void(std::string_view line)> write) : write_(std::move(write)) {}

void LossLog::Add(std::int64_t now, std::string_view subject, const std::string& text) {
  Remember(now, subject, text);
  if (const auto quiet = quiet_.find(subject); quiet != quiet_.end()) {
    ++quiet->second.more;
    quiet->second.last = text;
    return;
  }
  write_(text);
  if (quiet_.size() >= kSubjectsMax) return;
  quiet_.emplace(subject, Quiet{.until = now + kQuietNanoseconds});
}

void LossLog::Count(std::string_view cause) {
  auto found = causes_.find(cause);
  if (found == causes_.end()) {
    found = causes_.try_emplace(causes_.size() < kCausesMax ? std::string(cause) : "(other)").first;
  }
  ++found->second;
}

void LossLog::Tend(std::int64_t now) {
  for (auto entry = quiet_.begin(); entry != quiet_.end();) {
    auto& [subject, quiet] = *entry;
    if (now < quiet.until) {
      ++entry;
    } else if (quiet.more == 0) {
      entry = quiet_.erase(entry);
    } else {
      write_(
          fmt::format("{} more of the same ({}); the last: {}", quiet.more, subject, quiet.last));
      quiet = {.until = now + kQuietNanoseconds};
      ++entry;
    }
  }
}

void LossLog::Remember(std::int64_t now, std::string_view subject, const std::string& text) {
  const auto before = std::find_if(losses_.begin(), losses_.end(),
                                   [&](const Loss& loss) { return loss.subject == subject; });
  Loss loss{.time = now, .subject = std::string(subject), .text = text};
  if (before != losses_.end()) {
    loss.times += before->times;
    losses_.erase(before);
  }
  losses_.push_front(std::move(loss));
  if (losses_.size() > kLossesMax) losses_.pop_back();
}

}  // namespace menger
