#include "menger/replay/durability/replay_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "menger/base/log.h"

namespace menger {
namespace {

// Waits are cut into pieces of this length, which no clock arithmetic overflows.
constexpr std::chrono::nanoseconds kWaitMax = std::chrono::hours(1);
constexpr std::chrono::hours kLossMax(24);  // Sums with the clock do not overflow.

constexpr int kGroupsPerLoss = 20;  // In loss_max.
constexpr int kSyncsPerLoss = 4;

constexpr std::uint64_t kJournalsMax = 3;  // Times journal_bytes_max.
constexpr std::chrono::nanoseconds kRetryFirst = std::chrono::seconds(1);
constexpr int kRetryDoublingsMax = 6;

void CheckPositive(const char* field, std::chrono::nanoseconds duration) {
  if (duration.count() <= 0) {
    throw InvalidArgument("durability.{} is {} ns; it must be more than 0", field,
                          duration.count());
  }
}

// With a text of its own. Copies of a standard exception share theirs, which the last of them
// frees: what goes to another thread would be freed there or here, and ThreadSanitizer does not see
// that the standard library counts.
Error Apart(const Error& error) { return {error.code(), std::string(error.what())}; }

}  // namespace

const char* ToString(Durability durability) {
  switch (durability) {
    case Durability::kNone:
      return "none";
    case Durability::kCheckpoint:
      return "checkpoint";
    case Durability::kJournal:
      return "journal";
  }
  return "unknown";
}

void DurabilityOptions::Check() const {
  if (kind == Durability::kNone) return;
  if (folder.empty()) throw InvalidArgument("durability.folder is empty; it must name a folder");
  CheckPositive("checkpoint_every", checkpoint_every);
  CheckPositive("loss_max", loss_max);
  if (loss_max > kLossMax) {
    throw InvalidArgument("durability.loss_max is {} s; it must be at most {} s",
                          std::chrono::duration<double>(loss_max).count(),
                          std::chrono::seconds(kLossMax).count());
  }
  if (journal_bytes_max == 0) throw InvalidArgument("durability.journal_bytes_max is 0");
}

ReplayKeeper::ReplayKeeper(ReplayStore& store, const DurabilityOptions& options)
    : store_(store), options_(options) {
  options_.Check();
  if (options_.kind == Durability::kNone) return;
  folder_.emplace(options_.folder);
  const std::optional<std::uint64_t> found =
      folder_->Recover(store, options_.kind == Durability::kJournal);
  newest_ = folder_->NextNumber();
  next_number_ = newest_ + 1;
  // No other opening of this folder had the number, nor will one have it: keys of inserts that were
  // lost name nothing.
  store.BeginLife(newest_);
  // So that journals of two processes never depend on each other.
  const ReplayCheckpoint base(store);
  base.Write(folder_->CheckpointPath(newest_), found ? folder_->CheckpointPath(*found) : "");
  if (options_.kind == Durability::kJournal) {
    journal_ =
        std::make_unique<ReplayJournal>(store, options_.folder, options_.loss_max, base, newest_);
  }
  folder_->RemoveBefore(found.value_or(newest_));
  thread_ = Thread({.name = "replay-keeper"}, [this] { Run(); });
}

ReplayKeeper::~ReplayKeeper() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wanted_.notify_all();
}

// ---- Requests

void ReplayKeeper::Sync(const Deadline& deadline) {
  if (options_.kind != Durability::kJournal) return Checkpoint(deadline);
  MutexLock lock(mutex_);
  Await(lock, syncs_, deadline, "sync");
}

void ReplayKeeper::Checkpoint(const Deadline& deadline) {
  if (options_.kind == Durability::kNone) {
    throw FailedPrecondition("the replay store is not kept: its durability is none");
  }
  MutexLock lock(mutex_);
  Await(lock, checkpoints_, deadline, "checkpoint");
}

void ReplayKeeper::Await(MutexLock& lock, Requests& requests, const Deadline& deadline,
                         const char* what) {
  const std::uint64_t number = ++requests.wanted;
  wanted_.notify_all();
  while (requests.done < number) {
    const std::chrono::nanoseconds remaining = deadline.remaining();
    if (remaining.count() == 0) {
      throw DeadlineExceeded("a {} of the replay store in '{}' was not done in time", what,
                             options_.folder);
    }
    done_.wait_for(lock.native(), std::min(remaining, kWaitMax));
  }
  if (requests.error) throw Apart(*requests.error);
}

void ReplayKeeper::Meet(Requests& requests, const std::optional<Error>& error) {
  requests.done = requests.begun;
  if (error) {
    requests.error.emplace(Apart(*error));
  } else {
    requests.error.reset();
  }
}

std::string ReplayKeeper::trouble() const {
  if (journal_ && journal_->failed()) return journal_->gate().why();
  const MutexLock lock(mutex_);
  return failures_ > 0 ? failure_ : "";
}

// ---- The thread

void ReplayKeeper::Run() {
  MutexLock lock(mutex_);
  while (!stop_) {
    syncs_.begun = syncs_.wanted;
    const bool sync = syncs_.begun > syncs_.done;
    const bool checkpoint = CheckpointIsWanted();
    if (checkpoint) {
      checkpoints_.begun = checkpoints_.wanted;
      is_writing_ = true;
    }
    lock.Unlock();
    const std::optional<Error> not_written = journal_ ? WriteJournal(sync) : std::nullopt;
    const std::optional<Error> not_begun = checkpoint ? BeginCheckpoint() : std::nullopt;
    lock.Lock();
    if (not_begun) {
      is_writing_ = false;
      CheckpointFailed(*not_begun);
      Meet(checkpoints_, not_begun);
    }
    const bool may_go_on = full_ && failures_ == 0 && !journal_->failed();
    if (!may_go_on) Meet(syncs_, not_written);
    done_.notify_all();
    Rest(lock);
  }
  lock.Unlock();
  writer_.Join();
  if (journal_) EndJournal();
}

// Until something is wanted, or a group of the journal is due.
void ReplayKeeper::Rest(MutexLock& lock) {
  const bool was_writing = is_writing_;
  std::chrono::nanoseconds pause = kWaitMax;
  if (!was_writing) pause = std::clamp(UntilCheckpoint(), std::chrono::nanoseconds(0), pause);
  if (journal_) pause = std::min(pause, options_.loss_max / kGroupsPerLoss);
  const Deadline end = Deadline::After(pause);
  while (!stop_ && syncs_.wanted == syncs_.begun && !CheckpointIsWanted() &&
         is_writing_ == was_writing) {  // Else the pause is another.
    const std::chrono::nanoseconds left = end.remaining();
    if (left.count() == 0) return;
    wanted_.wait_for(lock.native(), left);
  }
}

bool ReplayKeeper::CheckpointIsWanted() const {
  return !is_writing_ && (checkpoints_.wanted > checkpoints_.begun || CheckpointIsDue());
}

std::chrono::nanoseconds ReplayKeeper::UntilCheckpoint() const {
  if (failures_ == 0) {
    return options_.checkpoint_every - std::chrono::nanoseconds(since_checkpoint_.nanoseconds());
  }
  const int doublings = std::min(failures_ - 1, kRetryDoublingsMax);
  return std::min(options_.checkpoint_every, kRetryFirst * (1 << doublings)) -
         std::chrono::nanoseconds(since_failure_.nanoseconds());
}

bool ReplayKeeper::CheckpointIsDue() const {
  if (UntilCheckpoint().count() <= 0) return true;
  return failures_ == 0 && journal_ && !journal_->failed() && !beside_journal_ &&
         journal_->segment_bytes() >= options_.journal_bytes_max;
}

// Returns why there will be none.
std::optional<Error> ReplayKeeper::BeginCheckpoint() {
  writer_.Join();  // It has finished.
  since_checkpoint_.Restart();
  try {
    GoOnBeside();
    const bool has_journal = journal_ && !journal_->failed();
    beside_journal_ = has_journal && full_;
    // Journals follow each other without a gap: one that may not grow begins no other yet.
    const std::uint64_t number = beside_journal_ ? next_number_ : next_number_++;
    // Without its journal a store takes nothing new, but what it has can still be saved.
    cut_ = has_journal && !beside_journal_ ? journal_->Cut(number)
                                           : std::make_unique<ReplayCheckpoint>(store_);
    writer_ = Thread({.name = "replay-writer"},
                     [this, number, previous = newest()] { WriteCheckpoint(number, previous); });
    return std::nullopt;
  } catch (...) {
    cut_.reset();
    const Error error = TranslateCurrentException();
    LogError("no checkpoint of the replay store in '{}': {}", options_.folder, error.what());
    return error;
  }
}

void ReplayKeeper::WriteCheckpoint(std::uint64_t number, std::uint64_t previous) {
  std::optional<Error> error;
  try {
    cut_->Write(folder_->CheckpointPath(number), folder_->CheckpointPath(previous));
    folder_->RemoveBefore(previous);
  } catch (...) {
    error.emplace(TranslateCurrentException());
    LogError("no checkpoint of the replay store in '{}': {}", options_.folder, error->what());
  }
  if (error || !beside_journal_) cut_.reset();
  const MutexLock lock(mutex_);
  if (error) {
    CheckpointFailed(*error);
  } else {
    newest_ = number;
    failures_ = 0;
  }
  is_writing_ = false;
  Meet(checkpoints_, error);
  done_.notify_all();
  wanted_.notify_all();
}

void ReplayKeeper::CheckpointFailed(const Error& error) {
  ++failures_;
  failure_ = error.what();
  since_failure_.Restart();
}

std::uint64_t ReplayKeeper::newest() const {
  const MutexLock lock(mutex_);
  return newest_;
}

// Returns why what was inserted before is not on the disk.
std::optional<Error> ReplayKeeper::WriteJournal(bool sync) {
  try {
    if (journal_->failed()) {
      return Unavailable("the journal of the replay store has failed: {}", journal_->gate().why());
    }
    BoundJournal();
    if (full_) return Unavailable("{}", *full_);
    journal_->Write();
    if (!sync && since_sync_.nanoseconds() < options_.loss_max.count() / kSyncsPerLoss) {
      return std::nullopt;
    }
    since_sync_.Restart();
    journal_->Sync();
    return std::nullopt;
  } catch (...) {
    const Error error = TranslateCurrentException();
    LogError("the replay store in '{}' takes nothing more: {}", options_.folder, error.what());
    return error;
  }
}

// Once the checkpoint is written, or not, that was made beside a journal that may not grow.
void ReplayKeeper::GoOnBeside() {
  if (!beside_journal_) return;
  beside_journal_ = false;
  if (!cut_) return;
  const std::uint64_t written = newest();
  next_number_ = written + 1;
  full_.reset();
  journal_->GoOnFrom(*cut_, written);
  cut_.reset();
}

// Throws as the journal does.
void ReplayKeeper::BoundJournal() {
  MutexLock lock(mutex_);
  const std::uint64_t newest = newest_;
  const std::string cause = failures_ > 0 ? fmt::format("the last one failed: {}", failure_)
                                          : "one is still being written";
  const bool is_writing = is_writing_;
  lock.Unlock();
  if (!is_writing) GoOnBeside();
  if (beside_journal_) return;  // What it wrote now would lie before that checkpoint.
  const std::uint64_t bytes = journal_->BytesFrom(newest);
  if (bytes / kJournalsMax < options_.journal_bytes_max) {
    if (full_) journal_->GoOn();
    full_.reset();
    return;
  }
  const bool was_full = full_.has_value();
  full_ = fmt::format(
      "the journal in '{}' has {} bytes since checkpoint {}, {} times journal_bytes_max = {} or "
      "more, and waits for another checkpoint; {}",
      options_.folder, bytes, newest, kJournalsMax, options_.journal_bytes_max, cause);
  journal_->Hold(*full_);
  if (was_full) return;
  LogWarning("the replay store takes nothing until then: {}", *full_);
  journal_->Write();  // What was taken before.
  journal_->Sync();
}

void ReplayKeeper::EndJournal() {
  if (journal_->failed()) return;  // It was logged.
  try {
    GoOnBeside();
    journal_->End();
  } catch (...) {
    LogError("the last inserts into the replay store in '{}' are lost: {}", options_.folder,
             TranslateCurrentException().what());
  }
}

}  // namespace menger
