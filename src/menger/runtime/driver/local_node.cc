#include "menger/runtime/driver/local_node.h"

#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/runtime/driver/process_team.h"
#include "menger/runtime/driver/thread_team.h"

namespace menger {
namespace {

// So many messages may wait while all workers have enough to do.
constexpr std::size_t kMessagesMax = 64;
// And so many calls of the driver at the most, whoever has the lock and does not come to them.
constexpr std::size_t kMessagesBound = 2 * kMessagesMax;
// The caretaker looks so soon after news, then twice as late each time.
constexpr std::chrono::nanoseconds kLookAfter{1'000'000};
constexpr std::chrono::nanoseconds kLookAfterMost{100'000'000};
constexpr std::chrono::nanoseconds kGatherEvery{100'000'000};
// Workers that have not said that they have something are looked at all the same: one that went
// astray may have taken their flags down. So often while calls are not done, else ever less.
constexpr std::chrono::nanoseconds kLookAtAll{100'000'000};
constexpr std::chrono::nanoseconds kLookAtAllMost{10'000'000'000};
constexpr std::chrono::nanoseconds kLinesAgain{5'000'000};  // What workers print, not sent yet.
// Who keeps names answers, or says that it cannot, sooner than that.
constexpr std::chrono::seconds kNameMax{120};
constexpr std::chrono::seconds kKeeperMax{400};
constexpr std::chrono::milliseconds kSlice{100};
constexpr std::chrono::hours kForever{24 * 365};

NodeMachineOptions MachineOptions(const RuntimeOptions& options,
                                  const std::optional<LocalNode::Place>& place) {
  using Role = LocalNode::Place::Role;
  NodeMachineOptions machine;
  machine.workers = options.workers > 0 ? options.workers : AvailableCpus();
  machine.pool_max = options.workers_max;
  machine.threads = options.isolation == Isolation::kThread;
  machine.resources = options.resources;
  const bool as_given = place && place->role == Role::kNode;
  if (!as_given && machine.resources.Get("cpu") == 0) machine.resources.Set("cpu", machine.workers);
  machine.job = options.job;
  // What is read cannot leave memory, and what calls give needs room there, too.
  if (!machine.threads)
    machine.reading_bytes_max = ReadingRooms::PartOf(LocalNode::StoreBytes(options));
  if (!place) return machine;
  machine.node = place->own.node;
  machine.epoch = place->own.epoch;
  machine.node_patience = place->node_patience.count();
  machine.shares_names = place->ask_name != nullptr;
  if (place->role != Role::kBoth) machine.workers = 0;
  machine.only_borrows = place->role == Role::kDriver;
  if (machine.only_borrows) machine.resources = Resources(0, 0);
  return machine;
}

}  // namespace

std::uint64_t LocalNode::StoreBytes(const RuntimeOptions& options) {
  if (options.store_bytes_max > 0) return options.store_bytes_max;
  return MemoryLimit() * 3 / 10;
}

void LocalNode::AddDriverSegment() {
  try {
    store_.AddSegment();
  } catch (const Error& error) {
    throw WithContext(
        error, fmt::format("the runtime's store of {} (store_bytes_max, object_store_memory)",
                           MemoryText(static_cast<double>(StoreBytes(options_)))));
  }
}

// What others have of this node's values takes its room, too.
Spiller::Options LocalNode::SpillerOptions() {
  Spiller::Options options{.folder = options_.spill_folder,
                           .bytes_max = options_.spill_bytes_max,
                           .segment = kDriverSegment};
  options.comes_free = [this] { return neighbours_ != nullptr && neighbours_->frees_room(); };
  options.need_room = [this](std::uint64_t bytes) {
    if (neighbours_ != nullptr) neighbours_->ShowLess(bytes);
  };
  return options;
}

LocalNode::LocalNode(const RuntimeOptions& options, std::optional<Place> place)
    : Client(RootTask(options.job), RootTask(options.job)),
      options_(options),
      control_(options.job, options.control_folder),
      machine_(MachineOptions(options, place), *this),
      store_(StoreBytes(options)),
      losses_([this](std::string_view line) { Warn(line); }),
      bell_memory_(AllocateSharedMemory("menger-bell", sizeof(NodeBell))),
      spiller_(
          std::make_unique<Spiller>(SpillerOptions(), store_, machine_, [this] { bell().Ring(); })),
      place_(std::move(place)) {
  if (options.isolation == Isolation::kThread) {
    team_ = std::make_unique<ThreadTeam>(*this, machine_);
  } else {
    AddDriverSegment();
    const TaskId node = place_ ? ChildTask(TaskId{place_->own.node}, place_->own.epoch) : TaskId{};
    auto team = std::make_unique<ProcessTeam>(
        options, node, machine_, store_, *spiller_, guest_output_, shared_bell().flags,
        bell_memory_->descriptor(), [this] { bell().Ring(); });
    if (place_) {
      neighbours_ =
          std::make_unique<Neighbours>(place_->own, machine_, store_, NeighbourHooks(*team));
    }
    team_ = std::move(team);
  }
  {
    const std::lock_guard lock(node_mutex_);
    machine_.StartWorkers();
  }
  StartAnswering();  // May fail; a thread would have to be ended then.
  caretaker_ = Thread({.name = "node"}, [this] { LookAfter(); });
}

void LocalNode::End() {
  if (InFork()) return;
  socket_.reset();
  {
    // Whoever sends afterwards sees it: nothing is queued any longer.
    const std::lock_guard lock(queue_mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  {
    // Whoever holds the lock is the last who works.
    const std::lock_guard lock(node_mutex_);
  }
  bell().Ring();
  caretaker_.Join();
  WriteLines();
  control_.Finish();
  team_->Stop();
  line_printer_.reset();
  actors_.Clear();
  GiveBackAllMemory();
  Release();
}

void LocalNode::Release() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void LocalNode::CheckOpen() const {
  CheckProcess();
  if (stopping()) {
    throw FailedPrecondition(
        "the runtime has ended: of what it gave only pinned values are still of use");
  }
}

// ---- What the driver's threads tell.

ObjectHandle LocalNode::NewHandle(ObjectId id) {
  auto* const reference = new Reference{.id = id, .owner = this};
  users_.fetch_add(1, std::memory_order_relaxed);
  return ObjectHandle(reference);
}

void LocalNode::Submit(SpecPointer spec, std::span<ObjectHandle> results) {
  CheckOpen();
  const bool ahead = full_.load(std::memory_order_relaxed) ||
                     queued_.load(std::memory_order_relaxed) >= kMessagesBound;
  if (ahead && ThisWorker() == nullptr) SlowDown();
  const TaskId task = spec->task();
  for (std::uint32_t i = 0; i < results.size(); ++i) results[i] = NewHandle(ResultOf(task, i));
  const ThreadWorker* const thread = ThisWorker();
  Send({.kind = Message::Kind::kSubmit,
        .spec = std::move(spec),
        .caller = thread != nullptr ? thread->worker().index : 0});
}

ObjectHandle LocalNode::Adopt(ObjectId id) {
  CheckProcess();
  Send({.kind = Message::Kind::kAdopt, .object = id});
  return NewHandle(id);
}

void LocalNode::Forget(Reference* reference) noexcept {
  const ObjectId id = reference->id;
  delete reference;
  if (InFork()) return;
  Send({.kind = Message::Kind::kForget, .object = id});
  Release();
}

void LocalNode::Unpin(const ObjectHandle& object) noexcept {
  if (InFork()) return;
  Send({.kind = Message::Kind::kUnpin, .object = object.id()});
}

void LocalNode::Send(Message message) {
  const bool submit = message.kind == Message::Kind::kSubmit;
  std::size_t queued;
  {
    const std::lock_guard lock(queue_mutex_);
    if (stopping()) return;
    queue_.push_back(std::move(message));
    queued = queue_.size();
    queued_.store(queued, std::memory_order_release);
  }
  if (queued >= kMessagesMax || (submit && idle_workers_.load(std::memory_order_relaxed))) {
    Work();
  } else if (queued == 1 && resting_.load(std::memory_order_relaxed)) {
    bell().Ring();
  }
}

void LocalNode::Work() {
  pending_work_.store(true, std::memory_order_seq_cst);
  DoPendingWork();
}

// Either this gets the lock, or the holder sees the flag when he has given it up.
void LocalNode::DoPendingWork() {
  while (pending_work_.load(std::memory_order_seq_cst) && node_mutex_.try_lock()) {
    const std::unique_lock lock(node_mutex_.plain(), std::adopt_lock);
    pending_work_.store(false, std::memory_order_seq_cst);
    WorkLocked();
  }
}

void LocalNode::Tell(FunctionRef<void(NodeMachine&)> tell) {
  CheckOpen();
  {
    const std::lock_guard lock(node_mutex_);
    CheckOpen();
    machine_.SetTime(MonotonicNanoseconds());
    DeliverMessages();
    ++news_;
    tell(machine_);
    RunMachine();
  }
}

void LocalNode::WorkLocked(bool all) {
  if (stopping()) return;
  machine_.SetTime(MonotonicNanoseconds());
  // Before others are told that who has printed it is gone.
  if (guest_output_.waits()) SendLines();
  if (team_->Drain(all)) ++news_;
  DeliverMessages();
  RunMachine();
}

void LocalNode::RunMachine() {
  if (neighbours_ != nullptr) neighbours_->ForgetSent();  // Others may have their room.
  machine_.Run();
  while (spiller_->has_work() && spiller_->Work()) machine_.Run();
  if (neighbours_ != nullptr) ServeNeighbours();
  team_->Announce();
  LookAround();
}

void LocalNode::LookAround() {
  idle_workers_.store(machine_.scheduler().HasIdleWorker(), std::memory_order_relaxed);
  // Once it is full there is no room before there is some for a while.
  const auto below = [was_full = full_.load(std::memory_order_relaxed)](std::size_t max) {
    return was_full ? max - max / 8 : max;
  };
  const bool full = machine_.waiting_calls() >= below(options_.waiting_calls_max) ||
                    machine_.waiting_bytes() >= below(options_.waiting_bytes_max);
  full_.store(full, std::memory_order_relaxed);
  if (full) return;
  for (Waiter* const waiter : std::exchange(room_waiters_, {})) Wake(*waiter);
}

// A driver that runs ahead is slowed: it does the node's work until there is room.
void LocalNode::SlowDown() {
  Waiter waiter;
  std::unique_lock lock(node_mutex_);
  WorkLocked();
  if (!full_.load(std::memory_order_relaxed)) return;
  waiter.missing = 1;
  room_waiters_.push_back(&waiter);
  AwaitWaiter(waiter, Deadline::After(kForever), lock);
  std::erase(room_waiters_, &waiter);
  CheckOpen();
}

void LocalNode::DeliverMessages() {
  if (queued_.load(std::memory_order_acquire) == 0) return;
  {
    const std::lock_guard lock(queue_mutex_);
    std::swap(queue_, delivering_);
    queued_.store(0, std::memory_order_release);
  }
  ++news_;
  for (Message& message : delivering_) {
    if (message.kind == Message::Kind::kSubmit) {
      Worker* const caller = message.caller != 0 ? machine_.FindWorker(message.caller) : nullptr;
      machine_.Submit(kDriver, std::move(message.spec), caller);
      continue;
    }
    if (message.kind == Message::Kind::kTake) {
      machine_.Take(kDriver, message.stream, message.count);
      continue;
    }
    if (message.kind == Message::Kind::kAdopt) {
      machine_.objects().AddReferrer(kDriver, machine_.objects().FindOrMake(message.object));
      continue;
    }
    Object* const object = machine_.objects().Find(message.object);
    if (object == nullptr) continue;
    switch (message.kind) {
      case Message::Kind::kForget:
        machine_.objects().DropReferrer(kDriver, *object);
        break;
      default:
        machine_.objects().Unpin(kDriver, *object);
    }
  }
  delivering_.clear();
}

// Of processes the worker does it, or ends.
void LocalNode::ActorReleased(ActorId actor) {
  control_.ActorChanged(actor);
  if (options_.isolation == Isolation::kThread) ended_actors_.push_back(actor);
}

// What they do then is the user's affair: without the lock.
void LocalNode::DestroyActors() {
  std::vector<ActorId> ended;
  {
    const std::lock_guard lock(node_mutex_);
    ended.swap(ended_actors_);
  }
  for (const ActorId& actor : ended) actors_.Erase(actor);
}

// ---- Streams.

void LocalNode::Yield(std::uint64_t index, ObjectValue value,
                      std::span<const ObjectHandle> contained) {
  const ThreadWorker* const thread = ThisWorker();
  if (thread == nullptr) throw FailedPrecondition("an item is yielded outside of a call");
  TaskResult item{.value = std::move(value), .contained = {}};
  for (const ObjectHandle& handle : contained) item.contained.push_back(handle.id());
  Tell([&](NodeMachine& machine) {
    machine.Yield(thread->worker(), thread->running(), index, std::move(item));
  });
}

void LocalNode::Take(TaskId stream, std::uint64_t count) noexcept {
  if (InFork()) return;
  Send({.kind = Message::Kind::kTake, .stream = stream, .count = count});
  // The writer may wait for that.
  Work();
}

// ---- The rest of the driver's wishes.

void LocalNode::Cancel(const ObjectHandle& handle, bool force, bool recursive) {
  Tell([&](NodeMachine& machine) {
    Object* const object = machine.objects().Find(handle.id());
    if (object != nullptr) machine.Cancel(*object, force, recursive);
  });
}

void LocalNode::KillActor(ActorId id, ObjectId object, bool may_restart) {
  Tell([&](NodeMachine& machine) {
    Actor* const actor = machine.FindActor(id);
    actor != nullptr ? machine.KillActor(*actor, may_restart)
                     : machine.KillAnothers(object, may_restart);
  });
}

std::optional<Client::NamedActor> LocalNode::FindActor(std::string_view name) {
  NameAsker asker;
  const Watch watch{kDriver, reinterpret_cast<std::uintptr_t>(&asker)};
  const std::uint32_t before = asker.told.value();
  Tell([&](NodeMachine& machine) { machine.FindActor(watch, name); });
  const Deadline deadline = Deadline::After(name == kKeeperName ? kKeeperMax : kNameMax);
  while (!asker.told.TryWaitFor(before + 1, kSlice) && !deadline.expired() && !stopping()) {
  }
  {
    const std::lock_guard lock(node_mutex_);
    machine_.StopFinding(watch);
  }
  if (!asker.answer) throw DeadlineExceeded("nobody says in time who is '{}'", name);
  const NameAnswer& answer = *asker.answer;
  if (answer.error) {
    throw Unavailable("nobody can say who is '{}': {}", name, answer.error->what());
  }
  if (!answer.holder) return std::nullopt;
  return NamedActor{answer.holder->actor, NewHandle(answer.holder->object.object),
                    answer.holder->actor_class, answer.holder->construction,
                    machine_.IsOfAnother(answer.holder->object)};
}

void LocalNode::Named(const Watch& asker, const NameAnswer& answer) {
  if (asker.process == kDriver) {
    auto& waiting = *reinterpret_cast<NameAsker*>(asker.request);
    waiting.answer = answer;
    waiting.told.Advance();
  } else if (Worker* const worker = machine_.FindWorker(asker.process)) {
    worker->host->Named(asker.request, answer);
  }
}

void LocalNode::NameAnswered(const NameQuestion& question, const NameAnswer& answer) {
  TellNeighbours([&](Neighbours&) { machine_.NameAnswered(question, answer); });
}

void LocalNode::NameLost(const menger::NamedActor& actor) {
  TellNeighbours([&](Neighbours&) { machine_.NameLost(actor); });
}

bool LocalNode::IsCancelled() const {
  const ThreadWorker* const thread = ThisWorker();
  return thread != nullptr && thread->interrupted();
}

NodeMachine::Counts LocalNode::Counts() {
  const std::lock_guard lock(node_mutex_);
  return machine_.counts();
}

// For what nobody waits for: messages left by a thread that does other things since, results of
// short calls that a worker keeps while it does a long one.
void LocalNode::LookAfter() {
  std::chrono::nanoseconds pause = kLookAfter;
  look_at_all_pause_ = kLookAtAll;
  while (!stopping()) {
    resting_.store(false, std::memory_order_relaxed);
    const std::uint32_t seen = bell().value();
    if (stopping()) return;
    try {
      pause = LookOnce(pause);
    } catch (...) {  // It would serve nobody any longer.
      LogError("the node failed at some of its work, and goes on: {}",
               TranslateCurrentException().what());
      pause = kLookAfterMost;
    }
    resting_.store(pause > kLookAfter, std::memory_order_seq_cst);
    // Whoever left a message before that has not seen it.
    if (queued_.load(std::memory_order_seq_cst) > 0) pause = kLookAfter;
    bell().Wait(DoorbellRole::kNode, seen, Deadline::After(pause));
  }
}

std::chrono::nanoseconds LocalNode::LookOnce(std::chrono::nanoseconds pause) {
  Work();
  DestroyActors();
  const std::int64_t now = MonotonicNanoseconds();
  {
    const std::lock_guard lock(node_mutex_);
    pause = NextPause(pause, now);
    finished_rate_.Look(now, machine_.counts().finished);
    losses_.Tend(now);
  }
  WriteLines();
  KeepControlState(now);
  GiveBackMemory(now);
  return pause;
}

// As long again as nothing has been told: so whatever is found late had been there for no longer
// than all had been quiet before. What limits of time ask for comes in time. Under the lock.
std::chrono::nanoseconds LocalNode::NextPause(std::chrono::nanoseconds before, std::int64_t now) {
  const bool waiting = machine_.waiting_calls() > 0;
  if (now - looked_at_all_at_ >= (waiting ? kLookAtAll : look_at_all_pause_).count()) {
    looked_at_all_at_ = now;
    look_at_all_pause_ = std::min(2 * look_at_all_pause_, kLookAtAllMost);
    WorkLocked(/*all=*/true);
  }
  const bool news = std::exchange(seen_news_, news_) != news_;
  if (news) look_at_all_pause_ = kLookAtAll;
  std::chrono::nanoseconds pause = kLookAfterMost;
  // A thread that puts and forgets leaves a message each time: it shall not find a bell to ring.
  if (news) {
    pause = kLookAfter;
  } else if (waiting) {
    pause = std::min(2 * before, kLookAfterMost);
  }
  if (guest_output_.waits()) pause = std::min(pause, kLinesAgain);
  if (const std::optional<std::int64_t> deadline = machine_.next_deadline()) {
    pause = std::clamp(std::chrono::nanoseconds(*deadline - now), kLookAfter, pause);
  }
  return pause;
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
