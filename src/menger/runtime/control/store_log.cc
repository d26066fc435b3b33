#include "menger/runtime/control/store_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/log.h"
#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

constexpr std::uint32_t kFormatVersion = 1;
constexpr std::uint64_t kGrowth = 4;  // Of a file over what is alive.
constexpr std::chrono::seconds kIdle(1);
constexpr StoreVersion kVersionsUnsyncedMax = StoreVersion{1} << 32;

constexpr FrameKind kHeadFrame = 1;     // The format's version.
constexpr FrameKind kChangesFrame = 2;  // Encoded changes.
constexpr FrameKind kBeginFrame = 3;    // The version so far: what was alive is whole.

// Before the key and the value. Plain bytes.
struct ChangeHead {
  StoreVersion version = 0;
  LeaseEpoch lease = 0;
  std::uint32_t value_bytes = 0;
  std::uint16_t key_bytes = 0;
  StoreTable table = StoreTable::kNodes;
  StoreChange::Kind kind = StoreChange::Kind::kPut;
};
static_assert(sizeof(ChangeHead) == 24);
static_assert(kStoreKeyBytesMax <= UINT16_MAX && kStoreValueBytesMax <= UINT32_MAX);

void Encode(const StoreChange& change, std::vector<std::byte>& bytes) {
  AppendPlain(ChangeHead{.version = change.version,
                         .lease = change.lease,
                         .value_bytes = static_cast<std::uint32_t>(change.value.size()),
                         .key_bytes = static_cast<std::uint16_t>(change.key.size()),
                         .table = change.table,
                         .kind = change.kind},
              bytes);
  AppendArray(std::span<const char>(change.key), bytes);
  AppendArray(std::span<const char>(change.value), bytes);
}

void VisitChanges(std::span<const std::byte> bytes, const StoreJournal::Visitor& visit) {
  const auto text = [](std::span<const std::byte> taken) {
    return std::string_view(reinterpret_cast<const char*>(taken.data()), taken.size());
  };
  PlainReader reader(bytes);
  while (!reader.empty()) {
    const auto head = reader.Take<ChangeHead>();
    if (static_cast<int>(head.table) >= kStoreTables || head.kind > StoreChange::Kind::kVersion) {
      throw DataLoss("a change of table {} is of the unknown kind {}", static_cast<int>(head.table),
                     static_cast<int>(head.kind));
    }
    StoreChange change{.kind = head.kind, .table = head.table, .version = head.version};
    change.lease = head.lease;
    change.key = text(reader.Take(head.key_bytes));
    change.value = text(reader.Take(head.value_bytes));
    visit(change);
  }
}

FileDescriptor LockPrivateFolder(const std::string& folder) {
  CreateFolders(folder, FileReaders::kItsUser);
  return LockFolder(folder, "control state");
}

void Remove(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw FromErrno(fmt::format("cannot remove '{}'", path), error.value());
}

}  // namespace

StoreLog::StoreLog(StoreLogOptions options, const Visitor& replay, Snapshot snapshot)
    : options_(std::move(options)),
      snapshot_(std::move(snapshot)),
      lock_(LockPrivateFolder(options_.folder)) {
  Recover(replay);
  BeginFile();
  thread_ = Thread({.name = "store-log"}, [this] { Run(); });
}

StoreLog::~StoreLog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  has_work_.notify_one();
  thread_.Join();
}

OpenStoreJournal KeepInLog(StoreLogOptions options) {
  return [options = std::move(options)](const StoreJournal::Visitor& replay,
                                        StoreJournal::Snapshot snapshot) {
    return std::make_unique<StoreLog>(options, replay, std::move(snapshot));
  };
}

std::string StoreLog::PathOf(std::uint64_t number) const {
  return fmt::format("{}/control-{}.log", options_.folder, number);
}

// ---- Recovery

void StoreLog::Recover(const Visitor& replay) {
  std::vector<std::uint64_t> numbers = NumberedFiles(options_.folder, "control-", ".log");
  if (numbers.empty()) return;
  number_ = numbers.back();
  while (!numbers.empty() && !IsWhole(numbers.back())) numbers.pop_back();
  if (!numbers.empty()) {
    Replay(numbers.back(), replay);
    // Versions that somebody was given before the power went are not given again.
    return replay({.kind = StoreChange::Kind::kVersion,
                   .version = snapshot_.version() + kVersionsUnsyncedMax});
  }
  // The first file of all may have been cut short: then nothing was acknowledged yet.
  if (number_ > 1) {
    throw DataLoss("'{}' lacks what was alive when it was begun, and there is no older one",
                   PathOf(number_));
  }
}

bool StoreLog::IsWhole(std::uint64_t number) const {
  FrameFileReader reader(PathOf(number), number);
  while (const auto frame = reader.Next()) {
    if (frame->kind == kBeginFrame) return true;
  }
  return false;
}

void StoreLog::Replay(std::uint64_t number, const Visitor& replay) const {
  FrameFileReader reader(PathOf(number), number);
  while (const auto frame = reader.Next()) {
    PlainReader payload(frame->payload);
    if (frame->kind == kHeadFrame) {
      const auto version = payload.Take<std::uint32_t>();
      if (version == kFormatVersion) continue;
      throw FailedPrecondition("'{}' is of format {}; this program reads {}", reader.path(),
                               version, kFormatVersion);
    } else if (frame->kind == kChangesFrame) {
      VisitChanges(frame->payload, replay);
    } else if (frame->kind == kBeginFrame) {
      replay({.kind = StoreChange::Kind::kVersion, .version = payload.Take<StoreVersion>()});
    }
  }
}

// The next file, which begins with all that is alive, takes the place of those before. Of changes
// that are made meanwhile what is visited may have some and lack others that came before; all of
// them follow it, so that the begin is as the store was at one moment.
void StoreLog::BeginFile() {
  const std::vector<std::uint64_t> before = NumberedFiles(options_.folder, "control-", ".log");
  ++number_;
  FrameFileWriter file(PathOf(number_), number_, FileReaders::kItsUser);  // It has arguments.
  std::vector<std::byte> payload;
  AppendPlain(kFormatVersion, payload);
  file.Add(kHeadFrame, payload);
  for (Cursor cursor; !cursor.finished;) {
    payload.clear();
    snapshot_.next(cursor, [&](const StoreChange& change) { Encode(change, payload); });
    if (!payload.empty()) file.Add(kChangesFrame, payload);
  }
  payload.clear();
  {
    const std::lock_guard lock(mutex_);
    payload.swap(waiting_);
  }
  if (!payload.empty()) file.Add(kChangesFrame, payload);
  payload.clear();
  AppendPlain(snapshot_.version(), payload);
  file.Add(kBeginFrame, payload);
  file.Sync();
  SyncFolder(options_.folder);
  unsynced_since_ = 0;
  begin_bytes_ = file.bytes();
  file_.emplace(std::move(file));
  for (const std::uint64_t number : before) Remove(PathOf(number));
}

// ---- Writing

bool StoreLog::full() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() > options_.waiting_bytes_max;
}

void StoreLog::Append(const StoreChange& change) {
  const std::lock_guard lock(mutex_);
  if (!error_) Encode(change, waiting_);
}

void StoreLog::WhenSafe(Completion completion) {
  {
    const std::lock_guard lock(mutex_);
    completions_.push_back(std::move(completion));
  }
  has_work_.notify_one();
}

void StoreLog::Run() {
  std::vector<std::byte> changes;
  std::vector<Completion> completions;
  while (true) {
    std::optional<Error> error;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      has_work_.wait_for(lock, UntilSync(), [&] { return stopping_ || !completions_.empty(); });
      std::swap(changes, waiting_);
      std::swap(completions, completions_);
      error = error_;
      stopping = stopping_;
    }
    try {
      if (!error) {
        Write(changes);
        if (stopping) file_->Sync();
      }
    } catch (...) {
      error = TranslateCurrentException();
      LogError("the control state is no longer kept: {}", error->what());
      const std::lock_guard lock(mutex_);
      error_ = error;
      waiting_.clear();
    }
    for (const Completion& completion : completions) completion(error);
    changes.clear();
    completions.clear();
    if (stopping) return;
  }
}

void StoreLog::Write(std::vector<std::byte>& changes) {
  if (!changes.empty()) {
    file_->Add(kChangesFrame, changes);
    if (unsynced_since_ == 0) unsynced_since_ = MonotonicNanoseconds();
  }
  if (unsynced_since_ != 0 && UntilSync().count() <= 0) {
    file_->Sync();
    unsynced_since_ = 0;
  }
  if (file_->bytes() > std::max(options_.file_bytes_min, kGrowth * begin_bytes_)) BeginFile();
}

std::chrono::nanoseconds StoreLog::UntilSync() const {
  if (unsynced_since_ == 0) return kIdle;
  const std::int64_t passed = MonotonicNanoseconds() - unsynced_since_;
  return options_.sync_every - std::chrono::nanoseconds(passed);
}

}  // namespace menger
