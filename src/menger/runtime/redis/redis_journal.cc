#include "menger/runtime/redis/redis_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::size_t kChangesMax = 1000;                // Of one question,
constexpr std::size_t kBytesMax = std::size_t{1} << 20;  // and about so many.
constexpr milliseconds kPause{50};                       // Until Redis is tried again.

// Of the lease of a head: it tells that it lives after a fifth, and what it knows by itself is
// true for four fifths, since its clock may go slower than that of Redis.
constexpr int kBeats = 5;
constexpr int kSureBeats = 4;

// The first so many of them are one question.
std::size_t PartOf(std::span<const RedisChange> changes) {
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < std::min(changes.size(), kChangesMax); ++count) {
    bytes += changes[count].bytes();
    if (bytes > kBytesMax && count > 0) break;
  }
  return count;
}

}  // namespace

RedisJournal::RedisJournal(RedisJournalOptions options, const Visitor& replay, Snapshot snapshot)
    : options_(std::move(options)),
      snapshot_(std::move(snapshot)),
      claim_{.head = options_.head, .time_max = options_.head_lease} {
  Open(replay);
  thread_ = Thread({.name = "redis-journal"}, [this] { Run(); });
}

RedisJournal::~RedisJournal() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  has_work_.notify_one();
  thread_.Join();
}

OpenStoreJournal KeepInRedis(RedisJournalOptions options) {
  return [options = std::move(options)](const StoreJournal::Visitor& replay,
                                        StoreJournal::Snapshot snapshot) {
    return std::make_unique<RedisJournal>(options, replay, std::move(snapshot));
  };
}

// ---- Opening.

void RedisJournal::Open(const Visitor& replay) {
  const Deadline deadline = Deadline::After(options_.open_max);
  bool told_missing = false;
  for (bool told = false;; std::this_thread::sleep_for(kPause)) {
    try {
      const std::int64_t now = MonotonicNanoseconds();
      if (tables_ == nullptr) Connect();
      const std::optional<RedisTables::Holder> holder = tables_->Claim(claim_);
      if (!holder) {
        Confirm(now);
        break;
      }
      if (options_.has_ended && options_.has_ended(holder->head)) {
        tables_->Release({.head = holder->head});
        continue;
      }
      if (holder->time.count() < 0) {
        throw FailedPrecondition(
            "key 'menger:head' of the control store at {} is {}, which has no time to live: no "
            "head has written that; delete the key",
            options_.address.Describe(), QuoteBytes(holder->head));
      }
      if (deadline.expired()) {
        throw FailedPrecondition("the control store at {} has a head already, which goes on: {}",
                                 options_.address.Describe(), QuoteBytes(holder->head));
      }
      if (!std::exchange(told, true)) {
        LogInfo("the control store at {} was another head's ({}), whose lease ends in {} ms",
                options_.address.Describe(), QuoteBytes(holder->head), holder->time.count());
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable || deadline.expired()) throw;
      tables_.reset();
      if (!std::exchange(told_missing, true)) LogInfo("{}; this is tried again", error.what());
    }
  }
  tables_->Visit(replay);
  // What the heads before have given they may have given without anybody's having it.
  if (claim_.fail_overs == 0) return;
  replay(
      {.kind = StoreChange::Kind::kVersion, .version = (claim_.fail_overs << kFailOverShift) - 1});
}

void RedisJournal::Connect() {
  tables_ = std::make_unique<RedisTables>(options_.address, options_.patience);
}

// ---- The store's side.

bool RedisJournal::IsConfirmed(std::int64_t now) const {
  const nanoseconds sure = options_.head_lease * kSureBeats / kBeats;
  return now - confirmed_at_.load(std::memory_order_relaxed) < sure.count();
}

std::optional<Error> RedisJournal::WhyClosed() const {
  if (taken_.load(std::memory_order_relaxed)) {
    return Unavailable("another head has taken the control store at {}",
                       options_.address.Describe());
  }
  if (IsConfirmed(MonotonicNanoseconds())) return std::nullopt;
  return Unavailable("the control store at {} is not there", options_.address.Describe());
}

bool RedisJournal::full() const {
  const MutexLock lock(mutex_);
  return waiting_bytes_ > options_.waiting_bytes_max;
}

void RedisJournal::Append(const StoreChange& change) {
  // Redis counts heads instead: see Open.
  if (change.kind == StoreChange::Kind::kVersion) return;
  RedisChange kept(change);
  const MutexLock lock(mutex_);
  waiting_bytes_ += kept.bytes();
  waiting_.push_back(std::move(kept));
}

void RedisJournal::WhenSafe(Completion completion) {
  {
    const MutexLock lock(mutex_);
    completions_.push_back(std::move(completion));
  }
  has_work_.notify_one();
}

// ---- The thread.

void RedisJournal::Run() {
  while (true) {
    const bool stopping = Gather();
    try {
      if (taken_) throw *WhyClosed();
      if (tables_ == nullptr) Connect();
      WriteAll();
      Complete(std::nullopt);
      if (stopping && !HasMore()) return tables_->Release(claim_);
    } catch (const Error& error) {
      Lost(error);
      if (stopping) return Complete(Unavailable("the control store is closed: {}", error.what()));
    }
  }
}

// What has come since, unless some is under way still; waits for it until Redis is to hear of this
// head again, and for a while after a failure. Whether this is the last time.
bool RedisJournal::Gather() {
  const bool failed = tables_ == nullptr;
  const nanoseconds wait = failed ? nanoseconds(kPause) : nanoseconds(options_.head_lease / kBeats);
  MutexLock lock(mutex_);
  has_work_.wait_for(lock.native(), wait, [this, failed] {
    mutex_.AssertHeld();
    return stopping_ || (!failed && !completions_.empty());
  });
  std::ranges::move(completions_, std::back_inserter(completing_));
  completions_.clear();
  if (!changes_.empty()) return stopping_;
  changes_.swap(waiting_);
  waiting_bytes_ = 0;
  written_ = 0;
  return stopping_;
}

bool RedisJournal::HasMore() const {
  const MutexLock lock(mutex_);
  return !waiting_.empty();
}

void RedisJournal::WriteAll() {
  do {
    const std::span<const RedisChange> left = std::span(changes_).subspan(written_);
    const std::span<const RedisChange> part = left.subspan(0, PartOf(left));
    const std::int64_t now = MonotonicNanoseconds();
    const RedisTables::Outcome outcome = tables_->Write(claim_, number_, part);
    if (outcome == RedisTables::Outcome::kBehind) ReplaceAll();
    if (outcome == RedisTables::Outcome::kOther) taken_ = true;
    if (taken_) throw *WhyClosed();
    if (outcome == RedisTables::Outcome::kDone) {
      number_ += part.empty() ? 0 : 1;
      written_ += part.size();
    }
    Confirm(now);
  } while (written_ < changes_.size());
  changes_.clear();
  written_ = 0;
}

// Of changes that are made meanwhile what is visited may have some and lack others that came
// before; all of them follow it. Those under way it has.
void RedisJournal::ReplaceAll() {
  tables_->BeginStage();
  std::size_t records = 0;
  std::vector<RedisChange> part;
  for (Cursor cursor; !cursor.finished; part.clear()) {
    snapshot_.next(cursor, [&part](const StoreChange& change) { part.emplace_back(change); });
    if (part.empty()) continue;
    tables_->Stage(part);
    records += part.size();
  }
  number_ += 2;  // The one under way may be there.
  if (!tables_->Replace(claim_, number_)) {
    taken_ = true;
    return;
  }
  written_ = changes_.size();
  LogInfo("the Redis at {} lacked changes of the control store, of which it has all {} records now",
          tables_->server(), records);
}

void RedisJournal::Confirm(std::int64_t at) {
  confirmed_at_ = at;
  if (std::exchange(told_lost_, false)) {
    LogInfo("the control store is at the Redis at {} again", tables_->server());
  }
}

void RedisJournal::Lost(const Error& why) {
  tables_.reset();
  if (!std::exchange(told_lost_, true)) {
    if (taken_) {
      LogError("{}; this head is over", why.what());
    } else {
      LogWarning("the control store is not kept for the moment: {}", why.what());
    }
  }
  if (taken_ || !IsConfirmed(MonotonicNanoseconds())) Complete(why);
}

void RedisJournal::Complete(const std::optional<Error>& error) {
  for (const Completion& completion : completing_) completion(error);
  completing_.clear();
}

}  // namespace menger
