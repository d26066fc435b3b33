#include "menger/runtime/control/node_lease.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace menger {
namespace {

using Outcome = StoreResult::Outcome;

// Parts of a lease.
constexpr std::int64_t kMarginPart = 10;  // Clocks may differ by so much.
constexpr std::int64_t kRenewPart = 6;
constexpr std::int64_t kPatiencePart = 10;  // Then an answer is not waited for any longer.
constexpr std::int64_t kPausePart = 50;     // After a failure,
constexpr std::int64_t kWaitPart = 10;      // and while a name is another's.

constexpr std::uint64_t kNobodysEpoch = ~std::uint64_t{0};

bool AnyFailed(const std::vector<StoreResult>& results) {
  return std::ranges::any_of(
      results, [](const StoreResult& result) { return result.outcome == Outcome::kFailed; });
}

// Of whoever has a name; the highest if it is no node.
std::uint64_t EpochOfHolder(const std::string& value) {
  const std::size_t slash = value.find('/');
  std::uint64_t epoch = 0;
  if (slash == std::string::npos) return kNobodysEpoch;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data() + slash + 1, end, epoch);
  return error == std::errc() && at == end ? epoch : kNobodysEpoch;
}

}  // namespace

NodeLease::NodeLease(NodeRecord self, std::int64_t lease)
    : self_(std::move(self)), key_(KeyOf(self_.id)), lease_nanoseconds_(lease) {}

void NodeLease::WriteSelf() {
  record_text_ = Encode(self_);
  name_text_ = fmt::format("{}/{}", key_, self_.epoch);
}

void NodeLease::EndAs(End end) {
  state_ = State::kOver;
  end_ = end;
  asked_ = 0;
}

void NodeLease::EndIfOver(std::int64_t now) {
  if (!shown_ || now < until_ || state_ == State::kOver) return;
  EndAs(state_ == State::kLeaving ? End::kLeft : End::kLeaseOver);
}

std::int64_t NodeLease::wake_at() const {
  if (state_ == State::kOver) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t next = asked_ != 0 ? sent_at_ + lease_nanoseconds_ / kPatiencePart : next_at_;
  return shown_ ? std::min(next, until_) : next;
}

void NodeLease::Later(Step step, std::int64_t at) {
  step_ = step;
  next_at_ = at;
}

std::optional<StoreAsk> NodeLease::Next(std::int64_t now) {
  EndIfOver(now);
  const std::int64_t patience = lease_nanoseconds_ / kPatiencePart;
  if (asked_ != 0 && now - sent_at_ >= patience) {
    asked_ = 0;
    if (step_ == Step::kWrite) step_ = Step::kLook;
    next_at_ = now;
  }
  if (state_ == State::kOver || asked_ != 0 || now < next_at_) return std::nullopt;
  last_number_ += 2;
  asked_ = last_number_;
  sent_at_ = now;
  return StoreAsk{.number = asked_, .batch = BatchOf(step_), .patience = patience};
}

std::vector<StoreOperation> NodeLease::BatchOf(Step step) {
  const std::chrono::nanoseconds duration(lease_nanoseconds_);
  std::vector<StoreOperation> batch;
  switch (step) {
    case Step::kAcquire:
      batch.push_back(StoreOperation::Acquire(key_, duration));
      break;
    case Step::kLook:
      batch.push_back(StoreOperation::Renew(lease_, duration));
      batch.push_back(StoreOperation::Get(StoreTable::kNodes, key_));
      if (!self_.name.empty()) {
        batch.push_back(StoreOperation::Get(StoreTable::kNames, self_.name));
      }
      break;
    case Step::kWrite:
      // Nobody sees a node that may yet have to wait for its name.
      shown_ = shown_ || name_.right;
      if (!name_.right) {
        batch.push_back(
            StoreOperation::PutIf(StoreTable::kNames, self_.name, name_.version, name_text_)
                .BoundTo(lease_));
      }
      if (!record_.right && shown_) {
        batch.push_back(
            StoreOperation::PutIf(StoreTable::kNodes, key_, record_.version, record_text_)
                .BoundTo(lease_));
      }
      break;
    case Step::kGiveUp:
      batch.push_back(StoreOperation::Renew(lease_, std::chrono::nanoseconds(0)));
      if (record_.version != 0) {
        batch.push_back(StoreOperation::DeleteIf(StoreTable::kNodes, key_, record_.version));
      }
      if (!self_.name.empty() && name_.right) {
        batch.push_back(StoreOperation::DeleteIf(StoreTable::kNames, self_.name, name_.version));
      }
      break;
  }
  return batch;
}

void NodeLease::Answered(std::uint64_t number, const std::vector<StoreResult>& results,
                         std::int64_t now) {
  EndIfOver(now);
  if (number != asked_ || state_ == State::kOver) return;
  asked_ = 0;
  const bool failed = AnyFailed(results);
  const std::int64_t again = failed ? now + lease_nanoseconds_ / kPausePart : now;
  switch (step_) {
    case Step::kAcquire:
      return failed ? Later(Step::kAcquire, again) : Acquired(results[0], now);
    case Step::kLook:
      return failed ? Later(Step::kLook, again) : Looked(results, now);
    case Step::kWrite:
      return Later(Step::kLook, again);
    case Step::kGiveUp:
      return failed ? Later(Step::kGiveUp, again) : EndAs(End::kLeft);
  }
}

void NodeLease::Acquired(const StoreResult& result, std::int64_t now) {
  if (result.record.version == 0) return Later(Step::kAcquire, now);
  // In a conflict, too: it is its own, of a question whose answer it has not heard.
  lease_ = result.record.version;
  if (!shown_) self_.epoch = lease_;
  WriteSelf();
  Later(Step::kLook, now);
}

NodeLease::Seen NodeLease::Compare(const StoreRecord& record, const std::string& wanted) const {
  const bool right =
      record.version != 0 && record.value == wanted && record.lease == lease_ && !record.expired;
  return {.version = record.version, .right = right};
}

void NodeLease::Looked(const std::vector<StoreResult>& results, std::int64_t now) {
  if (!results[0].done()) return Later(Step::kAcquire, now);
  record_ = Compare(results[1].record, record_text_);
  name_ = {.right = true};
  if (!self_.name.empty()) {
    const StoreRecord& record = results[2].record;
    name_ = Compare(record, name_text_);
    const bool held = record.version != 0 && !record.expired;
    const std::uint64_t holder = name_.right || !held ? 0 : EpochOfHolder(record.value);
    if (holder > self_.epoch && shown_) return EndAs(End::kNameTaken);
    awaits_name_ = holder != 0 && holder != self_.epoch && !shown_;
    if (awaits_name_) {
      return Later(Step::kLook, now + lease_nanoseconds_ / kWaitPart);
    }
  }
  const std::int64_t lives_until = sent_at_ + lease_nanoseconds_ - lease_nanoseconds_ / kMarginPart;
  if (!shown_) until_ = lives_until;
  if (!record_.right || !name_.right) return Later(Step::kWrite, now);
  state_ = State::kMember;
  until_ = lives_until;
  Later(Step::kLook, sent_at_ + lease_nanoseconds_ / kRenewPart);
}

void NodeLease::Drain(std::int64_t now) {
  self_.state = NodeRecord::State::kDraining;
  WriteSelf();
  next_at_ = std::min(next_at_, now);
}

void NodeLease::Leave(std::int64_t now) {
  if (state_ == State::kOver) return;
  if (lease_ == 0) return EndAs(End::kLeft);
  state_ = State::kLeaving;
  asked_ = 0;
  Later(Step::kGiveUp, now);
}

}  // namespace menger
