#include "menger/runtime/cluster/join_watch.h"

#include <fmt/format.h>

#include <utility>

#include "menger/base/log.h"

namespace menger {
namespace {

constexpr double kToldAfter = 2;  // Seconds. A head may be about to begin.

}  // namespace

JoinWatch::JoinWatch(const RemoteStore* store, std::string address)
    : store_(store), address_(std::move(address)) {}

std::optional<Error> JoinWatch::LastFailure() const {
  return store_ != nullptr ? store_->last_failure() : std::nullopt;
}

void JoinWatch::Look() {
  const std::optional<Error> why = LastFailure();
  if (!why) return;
  if (why->code() == ErrorCode::kFailedPrecondition || why->code() == ErrorCode::kInvalidArgument) {
    throw WithContext(*why, fmt::format("the cluster at {}", address_));
  }
  if (since_.seconds() < kToldAfter || std::exchange(told_, true)) return;
  LogWarning("the cluster at {} is not reached yet: {}; this is tried again", address_,
             why->what());
}

Error JoinWatch::WhyNot(const Error& error) const {
  const std::optional<Error> why = LastFailure();
  if (error.code() != ErrorCode::kDeadlineExceeded || !why) return error;
  return Unavailable("the cluster at {} cannot be reached: {}", address_, why->what());
}

}  // namespace menger
