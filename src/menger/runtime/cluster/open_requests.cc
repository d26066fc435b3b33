#include "menger/runtime/cluster/open_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace menger {

bool OpenRequest::Expects(const StoreAnswer& answer) const {
  if (!completion) return answer.kind == StoreAnswer::Kind::kPage;
  return answer.kind == StoreAnswer::Kind::kResults && answer.results.size() == operations;
}

void OpenRequest::Complete(StoreAnswer answer) const {
  if (completion) {
    completion(std::move(answer.results));
  } else {
    page_completion(std::move(answer.page));
  }
}

void OpenRequest::Fail(const Error& why) const {
  if (completion) {
    const StoreResult failed{.outcome = StoreResult::Outcome::kFailed, .error = why};
    completion(std::vector(operations, failed));
  } else {
    page_completion({.error = why});
  }
}

void OpenRequests::Add(std::uint64_t number, OpenRequest request) {
  bytes_ += request.bytes;
  requests_.emplace(number, std::move(request));
}

OpenRequest* OpenRequests::Find(std::uint64_t number) {
  const auto found = requests_.find(number);
  return found == requests_.end() ? nullptr : &found->second;
}

OpenRequest OpenRequests::Take(std::uint64_t number) {
  auto taken = requests_.extract(number);
  bytes_ -= taken.mapped().bytes;
  return std::move(taken.mapped());
}

template <typename Condition>
std::vector<OpenRequest> OpenRequests::TakeIf(Condition condition) {
  std::vector<OpenRequest> taken;
  for (auto at = requests_.begin(); at != requests_.end();) {
    const auto each = at++;
    if (condition(each->second)) taken.push_back(Take(each->first));
  }
  return taken;
}

std::vector<OpenRequest> OpenRequests::TakeAll() {
  return TakeIf([](const OpenRequest&) { return true; });
}

std::vector<OpenRequest> OpenRequests::TakeSent() {
  return TakeIf([](const OpenRequest& request) { return request.sent; });
}

std::vector<OpenRequest> OpenRequests::TakeLate() {
  return TakeIf([](const OpenRequest& request) { return request.deadline.expired(); });
}

std::int64_t OpenRequests::look_at() const {
  std::int64_t at = std::numeric_limits<std::int64_t>::max();
  const std::int64_t now = MonotonicNanoseconds();
  for (const auto& [number, request] : requests_) {
    at = std::min(at, now + request.deadline.slice().count());
  }
  return at;
}

}  // namespace menger
