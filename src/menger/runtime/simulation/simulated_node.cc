#include "menger/runtime/simulation/simulated_node.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

constexpr int kWorkersMax = 200;
constexpr std::uint16_t kManyRetries = 10;  // Calls that throw now and then get through.

NodeMachineOptions Options(int number, std::uint64_t epoch, const NodePlan& plan) {
  return {.resources = SimulatedNode::ResourcesOf(plan),
          .workers = plan.workers,
          .threads = plan.threads,
          .node = SimulatedNode::IdOf(number),
          .epoch = epoch,
          .reading_bytes_max = plan.reading_bytes_max,
          .wait_here_max = plan.wait_here_max};
}

}  // namespace

SimulatedNode::SimulatedNode(int number, std::uint64_t epoch, const CommonPlan& common,
                             const NodePlan& plan, Random& random, SimulationCounts& counts)
    : number_(number),
      epoch_(epoch),
      common_(common),
      plan_(plan),
      random_(random),
      counts_(counts),
      machine_(Options(number, epoch, plan), static_cast<NodeEffects&>(*this)) {}

SimulatedNode::~SimulatedNode() = default;

Resources SimulatedNode::ResourcesOf(const NodePlan& plan) {
  Resources resources(plan.workers, plan.gpu ? 1 : 0);
  resources.Set("slot", 1000);  // Of placement groups: enough for all.
  if (plan.seats > 0) resources.Set("seat", plan.seats);
  return resources;
}

// ---- NodeEffects.

bool SimulatedNode::Offer(Worker& worker, const Task& task) {
  if (worker.lender != 0) {
    if (worker.outstanding.size() >= plan_.room) return false;
    Send(worker.lender,
         [loan = worker.loan, entry = SimulatedWorker::MakeEntry(*this, task, worker.lender)](
             SimulatedNode& lender, PeerIndex borrower) {
           SimulatedWorker* const lent = lender.FindLent(borrower, loan);
           if (lent == nullptr) return;
           SimulatedWorker::Entry resolved = entry;
           for (const auto& [place, kept] : entry.kept) {
             resolved.values[place] = lender.ReadKept(borrower, kept);
           }
           lent->Offer(std::move(resolved));
         });
    return true;
  }
  SimulatedWorker& simulated = *workers_.at(worker.index);
  if (simulated.queued() >= plan_.room) return false;
  simulated.Offer(SimulatedWorker::MakeEntry(*this, task, 0));
  return true;
}

bool SimulatedNode::Recall(Worker& worker, const Task& task) {
  if (worker.lender != 0) {
    Send(worker.lender,
         [loan = worker.loan, lease = task.lease](SimulatedNode& lender, PeerIndex borrower) {
           SimulatedWorker* const lent = lender.FindLent(borrower, loan);
           if (lent != nullptr && lent->Recall(lease)) lender.SayReturned(borrower, loan, lease);
         });
    return false;
  }
  return workers_.at(worker.index)->Recall(task.lease);
}

void SimulatedNode::Ready(const Watch& watch, Object& object) {
  Worker* record = nullptr;
  if (watch.process != kDriver) {
    record = machine_.FindWorker(watch.process);
    if (record == nullptr) return;
  } else if (const auto index = static_cast<WorkerIndex>(watch.request >> 32); index != 0) {
    record = machine_.FindWorker(index);
    if (record == nullptr) return;
  }
  if (!machine_.IsThere(object, record != nullptr ? record->index : kDriver)) {
    asks_again_.emplace_back(watch, object.id);
    return;
  }
  if (record != nullptr) return Bring(*record, watch.request, object);
  for (Held& held : held_) {
    if (held.watched && held.reference.object == object.id) return Check(held, object);
  }
}

void SimulatedNode::Free(const ObjectValue& value) {
  if (value.kind != ObjectValue::Kind::kShared) return;
  const auto extent = extents_.find(value.extent.offset);
  if (extent == extents_.end()) throw Internal("a value is freed twice");
  if (!extent->second.published) throw Internal("a value is freed before it is known");
  extents_.erase(extent);
}

void SimulatedNode::EndWorker(Worker& worker, std::string_view) {
  workers_.at(worker.index)->Die();
}

// ---- Surroundings.

ObjectValue SimulatedNode::MakeValue(WorkerIndex worker, Payload bytes) {
  if (plan_.threads || Draw(100) >= common_.shared_percent) {
    return ObjectValue::Inline(std::move(bytes));
  }
  // Some are worth waiting for a worker where they lie.
  const std::uint64_t size = bytes.size() * (last_extent_ % 3 == 0 ? 20'000 : 1);
  extents_.emplace(++last_extent_, Extent{std::move(bytes), worker, worker == 0});
  return ObjectValue::Shared({.offset = last_extent_, .bytes = size});
}

Payload SimulatedNode::Read(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kInline) return value.payload;
  const auto extent = extents_.find(value.extent.offset);
  if (value.kind != ObjectValue::Kind::kShared || extent == extents_.end()) {
    throw Internal("a value of kind {} cannot be read", static_cast<int>(value.kind));
  }
  return extent->second.bytes;
}

void SimulatedNode::Publish(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kShared) extents_.at(value.extent.offset).published = true;
}

void SimulatedNode::Complete(SpecHeader& header) {
  header.function = {1, header.task.low % 3};
  header.retries = header.kind == CallKind::kFunction ? common_.retries : 0;
  header.retry_errors = header.retries >= kManyRetries && header.task.low % 2 == 0;
  if (header.kind != CallKind::kConstruct) return;
  header.restarts = common_.restarts;
  header.checkpoint_every = common_.checkpoint_every;
}

std::string_view SimulatedNode::NeedsOf(const SpecHeader& header) {
  if (header.kind != CallKind::kMethod && header.home.valid()) {
    if (!common_.spread || header.task.low % 3 == 0) return "cpu=0 slot=1 @0";
    return header.task.low % 3 == 1 ? "cpu=0 slot=1 @1" : "cpu=0 slot=1";
  }
  if (header.kind == CallKind::kConstruct) {
    if (common_.seats && header.task.low % 2 == 0) return "cpu=0 seat=1";
    return common_.strategies ? "cpu=0;spread" : "cpu=0";
  }
  const bool gpu = common_.gpus && header.kind == CallKind::kFunction && header.task.low % 6 == 0;
  if (gpu) return "gpu=1";
  if (header.kind != CallKind::kFunction) return "";
  if (common_.strategies && header.task.low % 7 == 0) return "cpu=1;spread";
  if (common_.strategies && header.task.low % 7 == 1) return "cpu=0.5;gpu=1";
  return header.task.low % 5 == 0 ? "cpu=0.5" : "";
}

// ---- The schedule.

int SimulatedNode::Choices() {
  choices_.clear();
  for (const auto& [index, worker] : workers_) {
    if (worker->HasNews()) choices_.emplace_back(worker.get(), 0);
    if (worker->HasAnswer() && worker->alive()) choices_.emplace_back(worker.get(), 1);
    if (worker->CanStep()) choices_.emplace_back(worker.get(), 2);
  }
  return static_cast<int>(choices_.size()) + (starting_ > 0 ? 1 : 0) +
         (plan_.driver_steps > 0 ? 1 : 0) + static_cast<int>(starting_guests_.size()) +
         (programs_.empty() ? 0 : 1);
}

void SimulatedNode::Do(int choice) {
  if (choice < static_cast<int>(choices_.size())) {
    const auto [worker, what] = choices_[static_cast<std::size_t>(choice)];
    if (what == 2 && plan_.deaths > 0 && OneIn(15)) {
      Kill(*worker);
    } else if (what == 0) {
      worker->DeliverNews();
    } else if (what == 1) {
      worker->DeliverAnswer();
    } else {
      worker->Step();
    }
    if (OneIn(10) && worker->CanTimeOut()) worker->TimeOut();
  } else if (starting_ > 0 && choice == static_cast<int>(choices_.size())) {
    --starting_;
    AddProcess(machine_.AddWorker(machine_.NewWorkerIndex()));
  } else {
    choice -= static_cast<int>(choices_.size()) + (starting_ > 0 ? 1 : 0);
    if (choice < static_cast<int>(starting_guests_.size())) {
      StartGuestAt(static_cast<std::size_t>(choice));
    } else if (choice == static_cast<int>(starting_guests_.size()) && !programs_.empty()) {
      BringProgram();
    } else {
      --plan_.driver_steps;
      DriverStep();
    }
  }
}

void SimulatedNode::AddProcess(Worker& worker) {
  if (workers_.size() >= kWorkersMax) throw Internal("{} workers were started", kWorkersMax);
  workers_.emplace(worker.index,
                   std::make_unique<SimulatedWorker>(static_cast<Surroundings&>(*this), worker,
                                                     plan_.threads ? &states_ : nullptr));
}

// ---- Workers that run other nodes' programs.

void SimulatedNode::StartGuestAt(std::size_t index) {
  const ProgramIndex program = starting_guests_[index];
  starting_guests_.erase(starting_guests_.begin() + static_cast<std::ptrdiff_t>(index));
  if (plan_.deaths > 0 && OneIn(15)) return machine_.GuestFailed(program, "");
  Worker* const guest = machine_.AddGuest(machine_.NewWorkerIndex(), program);
  if (guest == nullptr) return;  // Its borrower is gone.
  ++counts_.guests;
  AddProcess(*guest);
}

void SimulatedNode::BringProgram() {
  const auto [peer, program] = programs_.back();
  programs_.pop_back();
  if (Peer* const there = machine_.FindPeer(peer)) machine_.SetProgram(*there, program);
}

void SimulatedNode::EndGuests() {
  for (const auto& [index, worker] : workers_) {
    const Worker* const record = machine_.FindWorker(index);
    if (record != nullptr && record->program != kOwnProgram) worker->Die();
  }
}

bool SimulatedNode::DropSomething() {
  const bool waits =
      std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.watched; });
  if (waits) return false;
  if (held_.empty()) {
    return std::ranges::any_of(workers_,
                               [](const auto& entry) { return entry.second->DropKeepsake(); });
  }
  Drop(held_.size() - 1);
  return true;
}

void SimulatedNode::Settle(std::int64_t now) {
  now_ = now;
  machine_.SetTime(now);
  for (const std::uint64_t wait : std::exchange(ended_waits_, {})) machine_.EndDriverWait(wait);
  AskAgain();
  CopyHere();
  SayThanks();
  Bury();
  EndReleased();
}

// What came lies elsewhere: whoever reads it asks for the value.
void SimulatedNode::AskAgain() {
  for (const auto& [watch, id] : std::exchange(asks_again_, {})) {
    Object* const object = machine_.objects().Find(id);
    if (object == nullptr) continue;
    if (machine_.WatchObject(watch, *object, /*with_value=*/true)) Ready(watch, *object);
  }
}

void SimulatedNode::Kill(SimulatedWorker& worker) {
  --plan_.deaths;
  ++counts_.deaths;
  worker.Die();
}

// What the dead have said is heard before the machine learns of their end; unless it was the
// machine that ended them.
void SimulatedNode::Bury() {
  for (auto at = workers_.begin(); at != workers_.end();) {
    SimulatedWorker& worker = *at->second;
    Worker* const record = machine_.FindWorker(worker.index());
    if (worker.alive() || (record != nullptr && worker.HasNews())) {
      ++at;
      continue;
    }
    if (record != nullptr) {
      machine_.WorkerDied(*record, {.kind = FailureKind::kWorkerDied,
                                    .code = ErrorCode::kUnavailable,
                                    .text = "it was killed"});
    }
    const WorkerIndex index = worker.index();
    std::erase_if(extents_, [index](const auto& extent) {
      return extent.second.writer == index && !extent.second.published;
    });
    at = workers_.erase(at);
  }
}

// What an actor on a thread held goes with it.
void SimulatedNode::EndReleased() {
  for (const ActorId id : std::exchange(released_, {})) {
    const auto state = states_.find(id);
    if (state == states_.end()) continue;
    if (state->second.kept) {
      machine_.objects().DropReferrer(kDriver,
                                      *machine_.objects().Find(state->second.kept->object));
    }
    states_.erase(state);
  }
}

std::string SimulatedNode::Describe() const {
  std::string text = fmt::format("node {}: {} calls, {} objects, {} ready, {} starting", number_,
                                 machine_.live_tasks(), machine_.objects().size(),
                                 machine_.scheduler().ready(), starting_);
  for (const Resources::Named& resource : machine_.scheduler().available().amounts()) {
    text += fmt::format(", {} {} free", resource.parts, resource.name);
  }
  for (const auto& scheduling : machine_.scheduler().classes()) {
    text += fmt::format("; class '{}': {} ready, {} workers{}", scheduling->text,
                        scheduling->ready_count, scheduling->workers.size(),
                        scheduling->foreign ? ", foreign" : "");
  }
  for (const auto& [index, worker] : workers_) text += "; " + worker->Describe();
  for (const Held& held : held_) {
    if (held.watched)
      text += fmt::format("; the driver waits for {}", ToString(held.reference.object));
  }
  return text;
}

void SimulatedNode::CheckNothingLeft() {
  checker_.CheckChains();
  const auto expect = [](std::string_view what, std::uint64_t is, std::uint64_t should) {
    if (is != should) throw Internal("in the end there are {} {}, not {}", is, what, should);
  };
  machine_.objects().ForEach([](const Object& object) {
    throw Internal(
        "in the end there is object {}: state {}, {} referrers, {} holds, {} pins, {} "
        "lineage, kind {}, {} wait",
        ToString(object.id), static_cast<int>(object.state.now()), object.referrers, object.holds,
        object.pins, object.lineage, static_cast<int>(object.value.kind), object.waiting.size());
  });
  expect("calls", machine_.live_tasks(), 0);
  expect("values in shared memory", extents_.size(), 0);
  expect("bytes of lineage", machine_.lineage_bytes(), 0);
  expect("states of actors", states_.size(), 0);
  const NodeMachine::Counts& counts = machine_.counts();
  expect("settled calls", counts.finished + counts.failed, counts.submitted + counts.rebuilt);
  while (!workers_.empty()) {
    workers_.begin()->second->Die();
    Bury();
    machine_.Run();
  }
  machine_.Run();
  expect("workers", machine_.workers(), 0);
  if (machine_.scheduler().available() != machine_.scheduler().total()) {
    throw Internal("in the end {} of {} CPUs are free", machine_.scheduler().available().Get("cpu"),
                   machine_.scheduler().total().Get("cpu"));
  }
}

}  // namespace menger::simulation
