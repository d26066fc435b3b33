#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "menger/runtime/driver/local_node.h"
#include "menger/runtime/driver/thread_worker.h"

// The part of the driver's node that makes, awaits and reads values.
namespace menger {
namespace {

constexpr std::chrono::nanoseconds kSlice{50'000'000};  // Between two looks at whether all ends.
// So many beyond those that are waited for are looked at, too: who waits for one after the other
// comes to the node once for all of these.
constexpr std::size_t kLookAhead = 64;
// Memory of values that nobody has needed for so long goes back to the system.
constexpr std::chrono::nanoseconds kUnusedAfter{10'000'000'000};
constexpr std::chrono::milliseconds kGiveBackMost{5};  // In each turn of the caretaker.
constexpr std::uint64_t kGiveBackBytes = std::uint64_t{2} << 20;

}  // namespace

ThreadWorker* LocalNode::ThisWorker() const {
  const CallContext* const call = RunningCall();
  return call != nullptr ? static_cast<ThreadWorker*>(call->execution) : nullptr;
}

void LocalNode::Publish(const ObjectHandle& object, ObjectValue value,
                        std::span<const ObjectHandle> contained) {
  std::vector<ObjectId> ids;
  for (const ObjectHandle& handle : contained) ids.push_back(handle.id());
  Tell([&](NodeMachine& machine) { machine.Put(kDriver, object.id(), std::move(value), ids); });
}

void LocalNode::Discard(const ObjectValue& value) noexcept {
  if (InFork()) return;
  const std::lock_guard lock(node_mutex_);
  Free(value);
}

// Within a process large values need no shared memory.
std::span<std::byte> LocalNode::Allocate(std::size_t bytes, ObjectValue& value) {
  CheckOpen();
  if (bytes <= kInlineBytesMax || options_.isolation == Isolation::kThread) {
    value = ObjectValue::Inline(Payload::Allocate(bytes));
    return value.payload.fill();
  }
  std::unique_lock lock(node_mutex_);
  CheckOpen();
  DeliverMessages();
  SharedExtent extent;
  if (!store_.Allocate(kDriverSegment, bytes, extent)) extent = AwaitRoom(bytes, lock);
  value = ObjectValue::Shared(extent);
  return store_.Write(extent);
}

SharedExtent LocalNode::AwaitRoom(std::size_t bytes, std::unique_lock<Mutex>& lock) {
  Waiter waiter;
  waiter.missing = 1;
  SharedExtent extent;
  const std::uint64_t request = spiller_->Request(
      kDriver, kDriverSegment, bytes, [&](const SharedExtent* room, const TaskFailure* refusal) {
        if (room != nullptr) {
          extent = *room;
        } else {
          waiter.refusal = *refusal;
        }
        Wake(waiter);
      });
  RunMachine();
  // The spiller gives an answer in the end.
  while (waiter.missing > 0 && !stopping()) {
    lock.unlock();
    AwaitWorkers(waiter, Deadline::After(kSlice));
    lock.lock();
  }
  spiller_->Withdraw(request);
  if (stopping()) throw Cancelled("the runtime ended while a value of {} bytes was put", bytes);
  if (waiter.refusal) throw TaskError(*waiter.refusal);
  return extent;
}

PinnedBytes LocalNode::Fetch(Object& object) {
  if (object.value.kind != ObjectValue::Kind::kShared) return PinnedBytes(object.value.payload);
  machine_.objects().Pin(kDriver, object);
  machine_.objects().AddReferrer(kDriver, object);
  return {store_.Read(object.value.extent), *this, NewHandle(object.id)};
}

Fetched LocalNode::Get(std::span<const ObjectHandle> handles, const Deadline& deadline) {
  Fetched fetched;
  fetched.values.reserve(handles.size());
  std::vector<Object*> objects;
  objects.reserve(handles.size());
  Waiter waiter{.reads = true};
  std::unique_lock lock = AwaitObjects(handles, handles.size(), deadline, objects, waiter);
  const auto failed = std::find(objects.begin(), objects.end(), waiter.failed);
  const auto late = std::find_if(objects.begin(), objects.end(),
                                 [&](const Object* object) { return !IsThere(*object, waiter); });
  if (failed != objects.end()) {
    fetched.failed = static_cast<std::size_t>(std::distance(objects.begin(), failed));
    fetched.values.emplace_back(waiter.failed->value.payload);
  } else if (late == objects.end()) {
    for (Object* const object : objects) fetched.values.push_back(Fetch(*object));
  }
  DropPins(waiter);
  if (failed != objects.end() || late == objects.end()) return fetched;
  if (waiter.refusal) throw TaskError(*waiter.refusal);
  throw DeadlineExceeded("object {} was not ready in time", ToString((*late)->id));
}

// Under the lock, as what follows.
bool LocalNode::IsThere(const Object& object, const Waiter& waiter) {
  return object.state == Object::State::kReady &&
         !(waiter.reads && (object.value.kind == ObjectValue::Kind::kSpilled ||
                            object.value.kind == ObjectValue::Kind::kRemote));
}

// Whether it is one of those whose values are wanted, and has failed: then none of the others is.
bool LocalNode::EndsWait(const Object& object, Waiter& waiter) {
  if (!waiter.reads || object.value.kind != ObjectValue::Kind::kError) return false;
  if (waiter.failed == nullptr) waiter.failed = &object;
  return true;
}

void LocalNode::PinFor(Waiter& waiter, Object& object) {
  if (!waiter.reads || object.value.kind != ObjectValue::Kind::kShared) return;
  machine_.objects().Pin(kDriver, object);
  waiter.pinned.push_back(&object);
}

void LocalNode::DropPins(Waiter& waiter) {
  for (Object* const object : std::exchange(waiter.pinned, {})) {
    machine_.objects().Unpin(kDriver, *object);
  }
}

std::vector<std::size_t> LocalNode::Wait(std::span<const ObjectHandle> handles, std::size_t count,
                                         const Deadline& deadline) {
  std::vector<Object*> objects;
  Waiter waiter;
  waiter.ordered = true;
  const std::unique_lock lock = AwaitObjects(handles, count, deadline, objects, waiter);
  NoteReady(handles, objects);
  std::unordered_map<const Object*, std::size_t> ranks;
  for (const Object* const object : waiter.order) ranks.emplace(object, ranks.size() + 1);
  // Those that were ready before have rank 0.
  const auto rank = [&](std::size_t i) {
    const auto found = ranks.find(objects[i]);
    return found != ranks.end() ? found->second : 0;
  };
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i]->state == Object::State::kReady) ready.push_back(i);
  }
  if (ranks.empty()) return ready;
  std::stable_sort(ready.begin(), ready.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return ready;
}

// For the next Wait: of `handles` the first are those of `objects`, the others were not looked at.
void LocalNode::NoteReady(std::span<const ObjectHandle> handles,
                          std::span<Object* const> objects) const {
  const auto note = [&](std::size_t i, const Object* object) {
    const bool ready = object != nullptr && object->state == Object::State::kReady;
    if (ready) handles[i].reference()->ready.store(true, std::memory_order_relaxed);
    return ready;
  };
  for (std::size_t i = 0; i < objects.size(); ++i) note(i, objects[i]);
  const std::size_t end = std::min(handles.size(), objects.size() + kLookAhead);
  for (std::size_t i = objects.size(); i < end; ++i) {
    if (!note(i, machine_.objects().Find(handles[i].id()))) return;
  }
}

// Returns with the lock held, when `count` of the objects are ready, one of those whose values are
// wanted has failed, or the deadline has passed. `objects` gets those that it has looked at.
std::unique_lock<LocalNode::Mutex> LocalNode::AwaitObjects(std::span<const ObjectHandle> handles,
                                                           std::size_t count,
                                                           const Deadline& deadline,
                                                           std::vector<Object*>& objects,
                                                           Waiter& waiter) {
  auto* const thread = ThisWorker();
  CheckOpen();
  std::unique_lock lock(node_mutex_);
  CheckOpen();
  WorkLocked();
  std::size_t ready = 0;
  for (std::size_t i = 0; i < handles.size() && ready < count; ++i) {
    objects.push_back(&machine_.objects().FindOrMake(handles[i].id()));
    if (!IsThere(*objects.back(), waiter)) continue;
    if (EndsWait(*objects.back(), waiter)) return lock;
    ++ready;
  }
  if (ready >= count) return lock;
  waiter.missing = count - ready;
  const Watch watch{kDriver, reinterpret_cast<std::uintptr_t>(&waiter)};
  for (Object* const object : objects) {
    // What comes must not push out what is there.
    if (IsThere(*object, waiter)) {
      PinFor(waiter, *object);
      continue;
    }
    // What was lost for good is ready at once: with an error.
    if (machine_.WatchObject(watch, *object, waiter.reads) && waiter.missing > 0) {
      waiter.missing = EndsWait(*object, waiter) ? 0 : waiter.missing - 1;
    }
  }
  const std::uint64_t wait = thread == nullptr ? machine_.BeginDriverWait(objects) : 0;
  if (thread != nullptr) {
    machine_.Block(thread->worker(), objects, deadline.remaining() < kNoTimeout / 2);
    waiting_threads_[thread->worker().index] = &waiter;
    // It may have been told before it began to wait.
    waiter.cancelled = thread->interrupted();
    if (waiter.cancelled) waiter.missing = 0;
  }
  RunMachine();
  AwaitWaiter(waiter, deadline, lock);
  for (Object* const object : objects) machine_.Unwatch(watch, *object);
  std::erase_if(asks_again_, [&watch](const auto& asked) { return asked.first == watch; });
  machine_.EndDriverWait(wait);
  if (thread != nullptr) {
    machine_.Unblock(thread->worker());
    waiting_threads_.erase(thread->worker().index);
  }
  if (waiter.cancelled) {
    DropPins(waiter);
    throw Cancelled("the call was cancelled while it waited for objects");
  }
  if (stopping() || !team_->broken().empty()) DropPins(waiter);
  if (stopping()) throw Cancelled("the runtime ended while a call waited for {} objects", count);
  if (!team_->broken().empty()) throw Unavailable("{}", team_->broken());
  return lock;
}

void LocalNode::AwaitWaiter(Waiter& waiter, const Deadline& deadline,
                            std::unique_lock<Mutex>& lock) {
  while (waiter.missing > 0 && !deadline.expired() && !stopping() && team_->broken().empty()) {
    lock.unlock();
    if (options_.isolation == Isolation::kProcess) {
      AwaitWorkers(waiter, deadline);
    } else {
      AwaitSignal(waiter, deadline);
    }
    lock.lock();
  }
}

void LocalNode::Ready(const Watch& watch, Object& object) {
  const bool with_value = watch.process != kDriver
                              ? watch.request % 2 == 1
                              : reinterpret_cast<const Waiter*>(watch.request)->reads;
  if (with_value && !machine_.IsThere(object, watch.process)) {
    asks_again_.emplace_back(watch, object.id);
    return;
  }
  if (watch.process != kDriver) {
    if (Worker* const worker = machine_.FindWorker(watch.process)) {
      worker->host->Ready(watch.request, object);
    }
    return;
  }
  auto& waiter = *reinterpret_cast<Waiter*>(watch.request);
  if (waiter.ordered) waiter.order.push_back(&object);
  PinFor(waiter, object);
  if (waiter.missing == 0) return;
  if (EndsWait(object, waiter) || waiter.missing == 1) return Wake(waiter);
  --waiter.missing;
}

void LocalNode::Interrupt(Worker& worker, const Task& task) {
  worker.host->Interrupt(task);
  const auto waiting = waiting_threads_.find(worker.index);
  if (waiting == waiting_threads_.end()) return;
  waiting->second->cancelled = true;
  Wake(*waiting->second);
}

void LocalNode::Wake(Waiter& waiter) {
  waiter.missing = 0;
  waiter.ready.Advance();
  // Who listens leaves his work to whoever has the lock, and may sleep when that is done.
  if (waiter.listens) bell().Ring();
}

void LocalNode::Free(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kShared) {
    const bool is_seen = neighbours_ != nullptr && neighbours_->KeepFreed(value.extent);
    if (!is_seen) store_.Free(value.extent);
  }
  if (value.spilled_at != 0) spiller_->Forget(value);
}

void LocalNode::Refuse(const Watch& watch, const Object& object, const Payload& error) {
  if (watch.process == kDriver) {
    auto& waiter = *reinterpret_cast<Waiter*>(watch.request);
    waiter.refusal = DecodeFailure(error);
    Wake(waiter);
  } else if (Worker* const worker = machine_.FindWorker(watch.process)) {
    worker->host->Refuse(watch.request, object, error);
  }
}

LocalNode::StoreUse LocalNode::Store() {
  const std::lock_guard lock(node_mutex_);
  return {.used_bytes = store_.bytes_used(),
          .granted_bytes = store_.bytes_granted(),
          .resident_bytes = store_.bytes_resident(),
          .spiller = spiller_->counts()};
}

// ---- Waiting.

// Threads of the driver do the node's work themselves: they say when it is done.
void LocalNode::AwaitSignal(Waiter& waiter, const Deadline& deadline) {
  const std::uint32_t seen = waiter.ready.value();
  if (queued_.load(std::memory_order_acquire) > 0) Work();
  if (waiter.missing == 0) return;
  waiter.ready.TryWaitFor(seen + 1, std::min(deadline.remaining(), kSlice));
}

// One waiting thread listens to the workers and does the node's work meanwhile; others wait for
// what it finds.
void LocalNode::AwaitWorkers(Waiter& waiter, const Deadline& deadline) {
  const std::unique_lock getting(getting_, std::try_to_lock);
  if (!getting.owns_lock()) return AwaitSignal(waiter, deadline);
  const Deadline slice = Deadline::After(std::min(deadline.remaining(), kSlice));
  // An answer from another node takes as long as four wakes: the last one can be spared.
  const bool far = place_ && place_->role == Place::Role::kDriver;
  const SpinKind spin = far ? SpinKind::kYielding : SpinKind::kBrief;
  waiter.listens = true;
  std::uint32_t seen = bell().Listen(DoorbellRole::kGetter);
  for (;;) {
    Work();
    if (waiter.missing == 0 || slice.expired()) break;
    bell().Wait(DoorbellRole::kGetter, seen, slice, spin);
    seen = bell().value();
  }
  bell().Listen(DoorbellRole::kNode);
  waiter.listens = false;
  Work();
}

// A little at a time, with pauses, in which others have the lock.
void LocalNode::GiveBackMemory(std::int64_t now) {
  if (now - looked_for_unused_at_ >= kUnusedAfter.count()) {
    looked_for_unused_at_ = now;
    const std::lock_guard lock(node_mutex_);
    store_.LookForUnused();
    gives_back_ = true;
  }
  const Deadline enough = Deadline::After(kGiveBackMost);
  while (gives_back_ && !enough.expired()) {
    const std::lock_guard lock(node_mutex_);
    gives_back_ = store_.GiveBack(kGiveBackBytes);
  }
}

// At the end. Whoever still refers to a value cannot have it any longer; what is pinned stays.
void LocalNode::GiveBackAllMemory() {
  const std::lock_guard lock(node_mutex_);
  ObjectTable& objects = machine_.objects();
  while (Object* const object = objects.LeastRecentlyRead()) {
    ObjectValue gone;
    gone.kind = ObjectValue::Kind::kSpilled;
    const ObjectValue value = objects.Move(*object, std::move(gone));
    if (!value.extent.is_shown()) store_.Free(value.extent);
  }
  store_.GiveBackAll();
}

}  // namespace menger
