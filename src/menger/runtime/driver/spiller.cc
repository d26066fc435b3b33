#include "menger/runtime/driver/spiller.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"
#include "menger/base/temporary_folder.h"

namespace menger {
namespace {

// So long a call that runs may keep others waiting for room.
constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(10);
// More is spilled than is needed at once, so that the disk is busy while the next value is made.
constexpr std::uint64_t kAheadShare = 16;  // Of the store one part,
constexpr std::uint64_t kAheadBytesMax = std::uint64_t{64} << 20;
constexpr std::chrono::minutes kLookAround{1};

}  // namespace

Spiller::Spiller(Options options, ValueStore& store, NodeMachine& machine,
                 std::function<void()> wake)
    : options_(std::move(options)), store_(store), machine_(machine), wake_(std::move(wake)) {}

Spiller::~Spiller() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  has_jobs_.notify_all();
  thread_.Join();
}

// ---- What is asked for.

std::uint64_t Spiller::Request(ProcessIndex process, std::uint32_t segment, std::uint64_t bytes,
                               Taken taken) {
  requests_.push_back({.number = ++last_request_,
                       .process = process,
                       .segment = segment,
                       .bytes = bytes,
                       .since = MonotonicNanoseconds(),
                       .taken = std::move(taken)});
  return last_request_;
}

void Spiller::Withdraw(std::uint64_t request) {
  std::erase_if(requests_, [request](const WaitingRequest& one) { return one.number == request; });
}

void Spiller::Restore(Object& object) {
  if (!restoring_.insert(&object).second) return;
  machine_.objects().Pin(kDriver, object);
  wanted_.push_back(&object);
}

void Spiller::Forget(const ObjectValue& value) {
  const auto place = places_.find(value.spilled_at);
  if (place == places_.end()) return;
  Send({.kind = Job::Kind::kFree, .place = place->second});
  places_.erase(place);
}

bool Spiller::Work() {
  for (Object* const object : std::exchange(wanted_, {})) StartRestoring(*object);
  bool any = TakeDone();
  while (!requests_.empty()) {
    any |= GiveRoom();
    if (requests_.empty() || !MakeRoom(requests_.front())) break;
  }
  any |= RefuseHopeless();
  disk_error_.clear();
  return any;
}

// ---- Room.

bool Spiller::GiveRoom() {
  bool any = false;
  for (std::size_t i = 0; i < requests_.size();) {
    SharedExtent extent;
    if (!store_.Allocate(requests_[i].segment, requests_[i].bytes, extent)) {
      ++i;
      continue;
    }
    const WaitingRequest request = std::move(requests_[i]);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
    request.taken(&extent, nullptr);
    any = true;
  }
  return any;
}

// True if there is more room at once; what is being written gives some later.
bool Spiller::MakeRoom(const WaitingRequest& request) {
  if (request.bytes > store_.bytes_max()) return false;
  if (!disk_error_.empty()) return DropFromMemory();
  const auto missing = [&](std::uint64_t bytes) {
    return store_.bytes_used() + bytes > store_.bytes_max() + coming_bytes_;
  };
  bool at_once = false;
  // Even if the bytes would do: there is no such room in one piece.
  bool spill = coming_bytes_ == 0 || missing(request.bytes);
  const std::uint64_t ahead = std::min(store_.bytes_max() / kAheadShare, kAheadBytesMax);
  while (spill) {
    Object* const object = machine_.objects().LeastRecentlyRead();
    if (object == nullptr) {
      if (coming_bytes_ == 0 && options_.need_room) options_.need_room(request.bytes);
      break;
    }
    if (object->value.spilled_at != 0) {
      MoveToDisk(*object, object->value.spilled_at);
      at_once = true;
      spill = missing(request.bytes);
    } else {
      Spill(*object);
      spill = missing(request.bytes + ahead);
    }
  }
  return at_once;
}

bool Spiller::RefuseHopeless() {
  bool any = false;
  for (std::size_t i = 0; i < requests_.size();) {
    if (!IsHopeless(requests_[i])) {
      ++i;
      continue;
    }
    const TaskFailure failure = Full(requests_[i]);
    const WaitingRequest request = std::move(requests_[i]);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
    request.taken(nullptr, &failure);
    any = true;
  }
  return any;
}

bool Spiller::IsHopeless(const WaitingRequest& request) const {
  if (request.bytes > store_.bytes_max() || !disk_error_.empty()) return true;
  if (jobs_ > 0) return false;
  const bool comes_free =
      machine_.IsBusy(request.process) || (options_.comes_free && options_.comes_free());
  return !comes_free || MonotonicNanoseconds() - request.since > kPatience.count();
}

TaskFailure Spiller::Full(const WaitingRequest& request) const {
  TaskFailure failure = store_.Full(request.bytes);
  if (!disk_error_.empty()) failure.text += "; " + disk_error_;
  const std::string readers = machine_.LargestReaders();
  if (!readers.empty()) failure.text += "; what is read cannot go to the disk: " + readers;
  if (const std::uint64_t granted = store_.bytes_granted(); granted > 0) {
    failure.text += fmt::format("; workers have {} bytes for results", granted);
  }
  return failure;
}

// ---- To the disk.

// What the disk has already can go even if that is full.
bool Spiller::DropFromMemory() {
  Object* object = machine_.objects().LeastRecentlyRead();
  while (object != nullptr && object->value.spilled_at == 0) object = object->next;
  if (object != nullptr) MoveToDisk(*object, object->value.spilled_at);
  return object != nullptr;
}

void Spiller::Spill(Object& object) {
  machine_.objects().Pin(kDriver, object);
  coming_bytes_ += object.value.extent.bytes;
  ++jobs_;
  const SharedExtent& extent = object.value.extent;
  Send({.kind = Job::Kind::kWrite,
        .object = &object,
        .extent = extent,
        .bytes = store_.Write(extent)});
}

void Spiller::MoveToDisk(Object& object, std::uint64_t number) {
  ObjectValue value;
  value.kind = ObjectValue::Kind::kSpilled;
  value.extent.bytes = object.value.extent.bytes;
  value.spilled_at = number;
  store_.Free(machine_.objects().Move(object, std::move(value)).extent);
}

void Spiller::Written(Job& job) {
  Object& object = *job.object;
  coming_bytes_ -= job.extent.bytes;
  if (!job.error.empty()) {
    disk_error_ = job.error;
  } else {
    counts_.spilled_bytes += job.extent.bytes;
    places_.emplace(++last_place_, job.place);
    object.value.spilled_at = last_place_;
    // Somebody may have begun to read it.
    if (object.pins == 1) MoveToDisk(object, last_place_);
  }
  machine_.objects().Unpin(kDriver, object);
}

// ---- And back.

void Spiller::StartRestoring(Object& object) {
  const SpilledValue place = places_.at(object.value.spilled_at);
  Request(kDriver, options_.segment, place.bytes,
          [this, &object, place](const SharedExtent* extent, const TaskFailure* refusal) {
            if (extent != nullptr) {
              ++jobs_;
              return Send({.kind = Job::Kind::kRead,
                           .object = &object,
                           .extent = *extent,
                           .bytes = store_.Write(*extent),
                           .place = place});
            }
            restoring_.erase(&object);
            machine_.NoRoom(object, Encode(*refusal));
            machine_.objects().Unpin(kDriver, object);
          });
}

void Spiller::Read(Job& job) {
  Object& object = *job.object;
  restoring_.erase(&object);
  if (job.error.empty()) {
    counts_.restored_bytes += job.extent.bytes;
    machine_.Restored(object, job.extent);
  } else {
    ++counts_.lost;
    store_.Free(job.extent);
    machine_.Lose(object);
  }
  machine_.objects().Unpin(kDriver, object);
}

bool Spiller::TakeDone() {
  std::vector<Job> done;
  {
    const std::lock_guard lock(mutex_);
    done.swap(done_);
    has_done_.store(false, std::memory_order_relaxed);
  }
  for (Job& job : done) {
    --jobs_;
    job.kind == Job::Kind::kWrite ? Written(job) : Read(job);
  }
  return !done.empty();
}

Spiller::Counts Spiller::counts() const {
  Counts counts = counts_;
  counts.disk_bytes = disk_bytes_.load(std::memory_order_relaxed);
  return counts;
}

// ---- The thread.

void Spiller::Send(Job job) {
  if (!thread_.joinable()) thread_ = Thread({.name = "spiller"}, [this] { Serve(); });
  {
    const std::lock_guard lock(mutex_);
    todo_.push_back(std::move(job));
  }
  has_jobs_.notify_one();
}

void Spiller::Serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (todo_.empty() && !stop_) has_jobs_.wait_for(lock, kLookAround);
    if (stop_) return;
    Job job = std::move(todo_.front());
    todo_.pop_front();
    lock.unlock();
    Do(job);
    lock.lock();
    if (job.kind == Job::Kind::kFree) continue;
    done_.push_back(std::move(job));
    has_done_.store(true, std::memory_order_release);
    lock.unlock();
    wake_();
    lock.lock();
  }
}

void Spiller::Do(Job& job) {
  try {
    if (job.kind == Job::Kind::kWrite) {
      const std::span<const std::byte> parts[] = {job.bytes};
      job.place = files().Write(parts);
    } else if (job.kind == Job::Kind::kRead) {
      files().Read(job.place, job.bytes);
    } else {
      files().Free(job.place);
    }
    disk_bytes_.store(files().used_bytes(), std::memory_order_relaxed);
  } catch (...) {
    job.error = TranslateCurrentException().what();
    // Here, where whoever reads the log may be slow. The object is pinned, and its name its own.
    if (job.kind == Job::Kind::kRead) {
      LogWarning("object {} is lost: {}", ToString(job.object->id), job.error);
    }
  }
}

SpillFiles& Spiller::files() {
  if (files_ == nullptr) {
    const std::string folder = options_.folder.empty() ? FolderOfTemporaryFiles() : options_.folder;
    std::uint64_t bytes_max = options_.bytes_max;
    if (bytes_max == 0) {
      CreateFolders(folder);
      bytes_max = std::filesystem::space(folder).available / 2;
    }
    files_ = std::make_unique<SpillFiles>(folder, bytes_max);
  }
  return *files_;
}

}  // namespace menger
