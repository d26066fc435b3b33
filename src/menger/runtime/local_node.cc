#include "menger/runtime/local_node.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "menger/base/log.h"
#include "menger/runtime/process_team.h"
#include "menger/runtime/thread_team.h"

namespace menger {
namespace {

// So many messages may wait while all workers have enough to do.
constexpr std::size_t kMessagesMax = 64;
constexpr std::uint32_t kDriverSegment = 0;
constexpr std::chrono::milliseconds kLookAfter{1};
constexpr std::chrono::milliseconds kLookAfterIdle{100};
constexpr std::chrono::nanoseconds kGatherEvery{100'000'000};
constexpr std::chrono::nanoseconds kSlice{50'000'000};  // Between two looks at whether all ends.

NodeMachineOptions MachineOptions(const RuntimeOptions& options) {
  NodeMachineOptions machine;
  machine.workers = options.workers > 0 ? options.workers : AvailableCpus();
  machine.threads = options.isolation == Isolation::kThread;
  machine.resources = options.resources;
  if (machine.resources.Get("cpu") == 0) machine.resources.Set("cpu", machine.workers);
  machine.job = options.job;
  return machine;
}

std::uint64_t StoreBytes(const RuntimeOptions& options) {
  if (options.store_bytes_max > 0) return options.store_bytes_max;
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) * 3 / 10;
}

// The worker that this thread is; null for the driver's own threads.
ThreadWorker* ThisWorker() {
  const CallContext* const call = ThisCall();
  return call != nullptr ? static_cast<ThreadWorker*>(call->execution) : nullptr;
}

}  // namespace

LocalNode::LocalNode(const RuntimeOptions& options)
    : Client(RootTask(options.job)),
      options_(options),
      control_(options.job, options.control_folder),
      machine_(MachineOptions(options), *this),
      store_(StoreBytes(options)),
      losses_([](std::string_view line) { LogWarning("{}", line); }),
      bell_memory_(AllocateSharedMemory("menger-bell", 4096)),
      spiller_(std::make_unique<Spiller>(
          Spiller::Options{.folder = options.spill_folder,
                           .bytes_max = options.spill_bytes_max,
                           .segment = kDriverSegment},
          store_, machine_, [this] { bell().Ring(); },
          [this](Object& object, const Payload& error) { Refuse(object, error); })) {
  if (options.isolation == Isolation::kThread) {
    team_ = std::make_unique<ThreadTeam>(*this, machine_);
  } else {
    store_.AddSegment();  // The driver's.
    team_ = std::make_unique<ProcessTeam>(options, machine_, store_, *spiller_,
                                          bell_memory_->descriptor(), [this] { bell().Ring(); });
  }
  {
    const std::lock_guard lock(node_mutex_);
    machine_.StartWorkers();
  }
  caretaker_ = Thread({.name = "node"}, [this] { LookAfter(); });
  StartAnswering();
}

LocalNode::~LocalNode() {
  socket_.reset();
  stopping_.store(true, std::memory_order_release);
  bell().Ring();
  caretaker_.Join();
  control_.Finish();
  team_.reset();
  // Somebody reads a value still, as an array of an interpreter that goes on.
  if (pins_.load(std::memory_order_acquire) > 0) store_.LeaveMapped();
}

// ---- What the driver's threads tell.

ObjectHandle LocalNode::NewHandle(ObjectId id) {
  return ObjectHandle(new Reference{.id = id, .owner = this});
}

void LocalNode::Submit(SpecPointer spec, std::span<ObjectHandle> results) {
  const TaskId task = spec->task();
  for (std::uint32_t i = 0; i < results.size(); ++i) results[i] = NewHandle(ResultOf(task, i));
  Send({.kind = Message::Kind::kSubmit, .spec = std::move(spec)});
}

ObjectHandle LocalNode::Adopt(ObjectId id) {
  Send({.kind = Message::Kind::kAdopt, .object = id});
  return NewHandle(id);
}

void LocalNode::Forget(Reference* reference) noexcept {
  const ObjectId id = reference->id;
  delete reference;
  Send({.kind = Message::Kind::kForget, .object = id});
}

void LocalNode::Unpin(const ObjectHandle& object) noexcept {
  pins_.fetch_sub(1, std::memory_order_acq_rel);
  Send({.kind = Message::Kind::kUnpin, .object = object.id()});
}

void LocalNode::Send(Message message) {
  const bool submit = message.kind == Message::Kind::kSubmit;
  std::size_t queued;
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(message));
    queued = queue_.size();
    queued_.store(queued, std::memory_order_release);
  }
  if (queued >= kMessagesMax || (submit && idle_workers_.load(std::memory_order_relaxed))) Work();
}

void LocalNode::Work() {
  pending_work_.store(true, std::memory_order_seq_cst);
  DoPendingWork();
}

// Either this gets the lock, or the holder sees the flag when he has given it up.
void LocalNode::DoPendingWork() {
  while (pending_work_.load(std::memory_order_seq_cst) && node_mutex_.try_lock()) {
    pending_work_.store(false, std::memory_order_seq_cst);
    WorkLocked();
    node_mutex_.unlock_only();
  }
}

void LocalNode::Tell(FunctionRef<void(NodeMachine&)> tell) {
  {
    const std::lock_guard lock(node_mutex_);
    machine_.SetTime(MonotonicNanoseconds());
    DeliverMessages();
    tell(machine_);
    RunMachine();
  }
}

void LocalNode::WorkLocked() {
  machine_.SetTime(MonotonicNanoseconds());
  team_->Drain();
  DeliverMessages();
  RunMachine();
}

void LocalNode::RunMachine() {
  machine_.Run();
  while (spiller_->has_work() && spiller_->Work()) machine_.Run();
  idle_workers_.store(machine_.scheduler().HasIdleWorker(), std::memory_order_relaxed);
}

void LocalNode::DeliverMessages() {
  if (queued_.load(std::memory_order_acquire) == 0) return;
  {
    const std::lock_guard lock(queue_mutex_);
    std::swap(queue_, delivering_);
    queued_.store(0, std::memory_order_release);
  }
  for (Message& message : delivering_) {
    if (message.kind == Message::Kind::kSubmit) {
      machine_.Submit(kDriver, std::move(message.spec));
      continue;
    }
    Object* const object = machine_.objects().Find(message.object);
    if (object == nullptr) continue;
    switch (message.kind) {
      case Message::Kind::kAdopt:
        machine_.objects().AddReferrer(kDriver, *object);
        break;
      case Message::Kind::kForget:
        machine_.objects().DropReferrer(kDriver, *object);
        break;
      default:
        machine_.objects().Unpin(kDriver, *object);
    }
  }
  delivering_.clear();
}

// ---- Values.

ObjectHandle LocalNode::Put(std::size_t bytes, FunctionRef<void(std::span<std::byte>)> fill,
                            std::span<const ObjectHandle> contained) {
  const ObjectId id = ResultOf(Caller().NextCall(), 0);
  ObjectValue value;
  const std::span<std::byte> room = Allocate(bytes, value);
  try {
    fill(room);
  } catch (...) {
    Tell([&](NodeMachine&) { Free(value); });
    throw;
  }
  std::vector<ObjectId> ids;
  for (const ObjectHandle& handle : contained) ids.push_back(handle.id());
  Tell([&](NodeMachine& machine) { machine.Put(kDriver, id, std::move(value), ids); });
  return NewHandle(id);
}

// Within a process large values need no shared memory.
std::span<std::byte> LocalNode::Allocate(std::size_t bytes, ObjectValue& value) {
  if (bytes <= kInlineBytesMax || options_.isolation == Isolation::kThread) {
    value = ObjectValue::Inline(Payload::Allocate(bytes));
    return value.payload.fill();
  }
  std::unique_lock lock(node_mutex_);
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
        waiter.missing = 0;
        waiter.ready.Advance();
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

Fetched LocalNode::Fetch(Object& object) {
  Fetched fetched;
  fetched.failed = object.value.kind == ObjectValue::Kind::kError;
  if (object.value.kind == ObjectValue::Kind::kShared) {
    pins_.fetch_add(1, std::memory_order_relaxed);
    machine_.objects().Pin(kDriver, object);
    machine_.objects().AddReferrer(kDriver, object);
    fetched.value = PinnedBytes(store_.Read(object.value.extent), *this, NewHandle(object.id));
  } else {
    fetched.value = PinnedBytes(object.value.payload);
  }
  return fetched;
}

std::vector<Fetched> LocalNode::Get(std::span<const ObjectHandle> handles,
                                    const Deadline& deadline) {
  std::vector<Object*> objects(handles.size());
  std::vector<Fetched> values(handles.size());
  Waiter waiter{.reads = true};
  std::unique_lock lock = AwaitObjects(handles, handles.size(), deadline, objects, waiter);
  const auto late = std::find_if(objects.begin(), objects.end(),
                                 [&](const Object* object) { return !IsThere(*object, waiter); });
  if (late == objects.end()) {
    for (std::size_t i = 0; i < handles.size(); ++i) values[i] = Fetch(*objects[i]);
  }
  DropPins(waiter);
  if (late == objects.end()) return values;
  if (waiter.refusal) throw TaskError(*waiter.refusal);
  throw DeadlineExceeded("object {} was not ready in time", ToString((*late)->id));
}

// Under the lock, as what follows.
bool LocalNode::IsThere(const Object& object, const Waiter& waiter) {
  return object.state == Object::State::kReady &&
         !(waiter.reads && object.value.kind == ObjectValue::Kind::kSpilled);
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

std::vector<bool> LocalNode::Wait(std::span<const ObjectHandle> handles, std::size_t count,
                                  const Deadline& deadline) {
  std::vector<Object*> objects(handles.size());
  std::vector<bool> ready(handles.size());
  Waiter waiter;
  std::unique_lock lock = AwaitObjects(handles, count, deadline, objects, waiter);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    ready[i] = objects[i]->state == Object::State::kReady;
  }
  return ready;
}

// Returns with the lock held, when `count` of the objects are ready or the deadline has passed.
std::unique_lock<LocalNode::Mutex> LocalNode::AwaitObjects(std::span<const ObjectHandle> handles,
                                                           std::size_t count,
                                                           const Deadline& deadline,
                                                           std::span<Object*> objects,
                                                           Waiter& waiter) {
  auto* const thread = ThisWorker();
  std::unique_lock lock(node_mutex_);
  WorkLocked();
  std::size_t ready = 0;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    objects[i] = &machine_.objects().FindOrMake(handles[i].id());
    ready += IsThere(*objects[i], waiter) ? 1 : 0;
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
      --waiter.missing;
    }
  }
  if (thread != nullptr) machine_.Block(thread->worker());
  RunMachine();
  while (waiter.missing > 0 && !deadline.expired() && !stopping() && team_->broken().empty()) {
    lock.unlock();
    if (options_.isolation == Isolation::kProcess) {
      AwaitWorkers(waiter, deadline);
    } else {
      AwaitSignal(waiter, deadline);
    }
    lock.lock();
  }
  for (Object* const object : objects) machine_.Unwatch(watch, *object);
  if (thread != nullptr) machine_.Unblock(thread->worker());
  if (stopping() || !team_->broken().empty()) DropPins(waiter);
  if (stopping()) throw Cancelled("the runtime ended while a call waited for {} objects", count);
  if (!team_->broken().empty()) throw Unavailable("{}", team_->broken());
  return lock;
}

void LocalNode::Ready(const Watch& watch, Object& object) {
  if (watch.process != kDriver) {
    if (Worker* const worker = machine_.FindWorker(watch.process)) {
      worker->host->Ready(watch.request, object);
    }
    return;
  }
  auto& waiter = *reinterpret_cast<Waiter*>(watch.request);
  PinFor(waiter, object);
  if (waiter.missing == 0 || --waiter.missing > 0) return;
  waiter.ready.Advance();
  // Who listens leaves his work to whoever has the lock, and may sleep when that is done.
  if (waiter.listens) bell().Ring();
}

void LocalNode::Free(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kShared) store_.Free(value.extent);
  if (value.spilled_at != 0) spiller_->Forget(value);
}

// There is no room for a value that was spilled: whoever waits for it does so no longer.
void LocalNode::Refuse(Object& object, const Payload& error) {
  for (const Watch& watch : machine_.objects().TakeWatches(object)) {
    if (watch.process == kDriver) {
      auto& waiter = *reinterpret_cast<Waiter*>(watch.request);
      waiter.refusal = DecodeFailure(error);
      waiter.missing = 0;
      waiter.ready.Advance();
    } else if (Worker* const worker = machine_.FindWorker(watch.process)) {
      worker->host->Refuse(watch.request, object, error);
    }
  }
}

LocalNode::StoreUse LocalNode::Store() {
  const std::lock_guard lock(node_mutex_);
  return {.used_bytes = store_.bytes_used(),
          .granted_bytes = store_.bytes_granted(),
          .resident_bytes = store_.bytes_resident(),
          .spiller = spiller_->counts()};
}

// ---- The rest of the driver's wishes.

void LocalNode::Cancel(const ObjectHandle& handle, bool force) {
  Tell([&](NodeMachine& machine) {
    if (Object* const object = machine.objects().Find(handle.id())) machine.Cancel(*object, force);
  });
}

void LocalNode::KillActor(ActorId id, bool may_restart) {
  Tell([&](NodeMachine& machine) {
    if (Actor* const actor = machine.FindActor(id)) machine.KillActor(*actor, may_restart);
  });
}

std::optional<Client::NamedActor> LocalNode::FindActor(std::string_view name) {
  std::optional<NamedActor> found;
  Tell([&](NodeMachine& machine) {
    const Actor* const actor = machine.FindActor(name);
    if (actor == nullptr) return;
    machine.objects().AddReferrer(kDriver, *actor->object);
    found = NamedActor{actor->id, NewHandle(actor->object->id)};
  });
  return found;
}

bool LocalNode::IsCancelled() const {
  const ThreadWorker* const thread = ThisWorker();
  return thread != nullptr && thread->interrupted();
}

NodeMachine::Counts LocalNode::Counts() {
  const std::lock_guard lock(node_mutex_);
  return machine_.counts();
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
  waiter.listens = true;
  std::uint32_t seen = bell().Listen(DoorbellRole::kGetter);
  for (;;) {
    Work();
    if (waiter.missing == 0 || slice.expired()) break;
    bell().Wait(DoorbellRole::kGetter, seen, slice);
    seen = bell().value();
  }
  bell().Listen(DoorbellRole::kNode);
  waiter.listens = false;
  Work();
}

// For what nobody waits for: messages left by a thread that does other things since, results of
// short calls that a worker keeps while it does a long one.
void LocalNode::LookAfter() {
  auto pause = std::chrono::nanoseconds(kLookAfter);
  std::int64_t now = 0;
  while (!stopping()) {
    const std::uint32_t seen = bell().value();
    if (stopping()) return;
    Work();
    {
      const std::lock_guard lock(node_mutex_);
      pause = machine_.live_tasks() > 0 ? kLookAfter : kLookAfterIdle;
      now = MonotonicNanoseconds();
      finished_rate_.Look(now, machine_.counts().finished);
      losses_.Tend(now);
    }
    KeepControlState(now);
    bell().Wait(DoorbellRole::kNode, seen, Deadline::After(pause));
  }
}

void LocalNode::KeepControlState(std::int64_t now) {
  if (now - gathered_at_ < kGatherEvery.count()) return;
  gathered_at_ = now;
  {
    const std::lock_guard lock(node_mutex_);
    control_.Gather(machine_);
  }
  control_.Write();
}

}  // namespace menger
