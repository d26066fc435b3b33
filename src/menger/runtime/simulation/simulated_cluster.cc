#include "menger/runtime/simulation/simulated_cluster.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

constexpr std::uint64_t kEventsMax = 200'000;
constexpr std::int64_t kTickNanoseconds = 1'000'000;
constexpr int kTicksMax = 5;  // Without anything to do, before the schedule counts as stuck.
constexpr int kWorkersMax = 60;

}  // namespace

SimulatedCluster::Plan SimulatedCluster::MakePlan(Random& random) {
  const auto below = [&random](int bound) { return static_cast<int>(random.Integers(0, bound)); };
  Plan plan;
  plan.threads = below(5) == 0;
  plan.workers = 1 + below(3);
  plan.driver_steps = 10 + below(50);
  plan.room = below(2) == 0 ? 1 + static_cast<std::size_t>(below(3)) : 100;
  plan.shared_percent = below(3) * 40;
  plan.deaths = plan.threads ? 0 : below(5);
  plan.cancels = below(3) == 0 ? 1 + below(4) : 0;
  plan.losses = below(3) == 0 ? 1 + below(6) : 0;
  const bool faithful = below(4) != 0;
  plan.retries = static_cast<std::uint16_t>(faithful ? 10 : below(2));
  plan.checkpoint_every = static_cast<std::uint16_t>(faithful ? 1 + below(4) : 0);
  plan.restarts = static_cast<std::uint16_t>(faithful ? 10 : 0);
  plan.errors = plan.cancels > 0 || plan.losses > 0 || (!faithful && plan.deaths > 0);
  return plan;
}

NodeMachineOptions SimulatedCluster::Options(const Plan& plan) {
  return {
      .resources = Resources(plan.workers, 0), .workers = plan.workers, .threads = plan.threads};
}

SimulatedCluster::SimulatedCluster(std::uint64_t seed)
    : random_(Random::FromSeed(seed)),
      plan_(MakePlan(random_)),
      machine_(Options(plan_), static_cast<NodeEffects&>(*this)) {}

SimulatedCluster::~SimulatedCluster() = default;

void SimulatedCluster::Run() {
  machine_.StartWorkers();
  int idle_ticks = 0;
  bool driving = true;
  while (driving || idle_ticks < 2) {
    if (++counts_.events > kEventsMax) FailStuck();
    machine_.SetTime(now_);
    if (DoSomething()) {
      idle_ticks = 0;
      continue;
    }
    driving = plan_.driver_steps > 0 || !held_.empty();
    if (++idle_ticks > kTicksMax) FailStuck();
    LetTimePass();
  }
  CheckNothingLeft();
  counts_.node = machine_.counts();
}

// ---- NodeEffects.

bool SimulatedCluster::Offer(Worker& worker, const Task& task) {
  SimulatedWorker& simulated = *workers_.at(worker.index);
  if (simulated.queued() >= plan_.room) return false;
  simulated.Offer(task);
  return true;
}

bool SimulatedCluster::Recall(Worker& worker, const Task& task) {
  return workers_.at(worker.index)->Recall(task.lease);
}

void SimulatedCluster::Ready(const Watch& watch, Object& object) {
  const auto index = static_cast<WorkerIndex>(watch.request >> 32);
  if (index != 0) {
    const auto worker = workers_.find(index);
    if (worker == workers_.end() || !worker->second->alive()) return;
    return worker->second->Ready(watch.request, object);
  }
  for (Held& held : held_) {
    if (held.watched && held.reference.object == object.id) return Check(held, object);
  }
}

void SimulatedCluster::Free(const ObjectValue& value) {
  if (value.kind != ObjectValue::Kind::kShared) return;
  const auto extent = extents_.find(value.extent.offset);
  if (extent == extents_.end()) throw Internal("a value is freed twice");
  if (!extent->second.published) throw Internal("a value is freed before it is known");
  extents_.erase(extent);
}

void SimulatedCluster::EndWorker(Worker& worker, std::string_view) {
  workers_.at(worker.index)->Die();
}

// ---- Surroundings.

ObjectValue SimulatedCluster::MakeValue(WorkerIndex worker, Payload bytes) {
  if (plan_.threads || Draw(100) >= plan_.shared_percent) {
    return ObjectValue::Inline(std::move(bytes));
  }
  const std::uint64_t size = bytes.size();
  extents_.emplace(++last_extent_, Extent{std::move(bytes), worker, worker == 0});
  return ObjectValue::Shared({.offset = last_extent_, .bytes = size});
}

Payload SimulatedCluster::Read(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kInline) return value.payload;
  const auto extent = extents_.find(value.extent.offset);
  if (value.kind != ObjectValue::Kind::kShared || extent == extents_.end()) {
    throw Internal("a value of kind {} cannot be read", static_cast<int>(value.kind));
  }
  return extent->second.bytes;
}

void SimulatedCluster::Publish(const ObjectValue& value) {
  if (value.kind == ObjectValue::Kind::kShared) extents_.at(value.extent.offset).published = true;
}

void SimulatedCluster::Complete(SpecHeader& header) {
  header.function = {1, header.task.low % 3};
  header.retries = header.kind == CallKind::kFunction ? plan_.retries : 0;
  if (header.kind != CallKind::kConstruct) return;
  header.restarts = plan_.restarts;
  header.checkpoint_every = plan_.checkpoint_every;
}

// ---- The schedule.

bool SimulatedCluster::DoSomething() {
  std::vector<std::pair<SimulatedWorker*, int>> choices;
  for (const auto& [index, worker] : workers_) {
    if (worker->HasNews()) choices.emplace_back(worker.get(), 0);
    if (worker->HasAnswer() && worker->alive()) choices.emplace_back(worker.get(), 1);
    if (worker->CanStep()) choices.emplace_back(worker.get(), 2);
  }
  const int others = (starting_ > 0 ? 1 : 0) + (plan_.driver_steps > 0 ? 1 : 0);
  const std::size_t all = choices.size() + static_cast<std::size_t>(others);
  if (all == 0) {
    const bool waits =
        std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.watched; });
    if (waits || held_.empty()) return false;
    Drop(held_.size() - 1);
    EndReleased();
    machine_.Run();
    return true;
  }
  const auto choice = static_cast<std::size_t>(Draw(static_cast<int>(all)));
  if (choice < choices.size()) {
    const auto [worker, what] = choices[choice];
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
  } else if (starting_ > 0 && choice == choices.size()) {
    --starting_;
    if (workers_.size() >= kWorkersMax) throw Internal("{} workers were started", kWorkersMax);
    Worker& worker = machine_.AddWorker(machine_.NewWorkerIndex());
    workers_.emplace(worker.index,
                     std::make_unique<SimulatedWorker>(static_cast<Surroundings&>(*this), worker,
                                                       plan_.threads ? &states_ : nullptr));
  } else {
    --plan_.driver_steps;
    DriverStep();
  }
  Bury();
  EndReleased();
  if (OneIn(20)) now_ += kTickNanoseconds;
  if (!OneIn(4)) machine_.Run();
  return true;
}

void SimulatedCluster::Kill(SimulatedWorker& worker) {
  --plan_.deaths;
  ++counts_.deaths;
  worker.Die();
}

// What the dead have said is heard before the machine learns of their end; unless it was the
// machine that ended them.
void SimulatedCluster::Bury() {
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
void SimulatedCluster::EndReleased() {
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

void SimulatedCluster::LetTimePass() {
  now_ += kTickNanoseconds;
  machine_.SetTime(now_);
  machine_.Run();
  Bury();
  EndReleased();
}

void SimulatedCluster::FailStuck() const {
  std::string text = fmt::format("nothing goes on: {} calls, {} objects, {} ready, {} starting",
                                 machine_.live_tasks(), machine_.objects().size(),
                                 machine_.scheduler().ready(), starting_);
  for (const auto& [index, worker] : workers_) text += "; " + worker->Describe();
  for (const Held& held : held_) {
    if (held.watched)
      text += fmt::format("; the driver waits for {}", ToString(held.reference.object));
  }
  throw Internal("{}", text);
}

void SimulatedCluster::CheckNothingLeft() {
  checker_.CheckChains();
  const auto expect = [](std::string_view what, std::uint64_t is, std::uint64_t should) {
    if (is != should) throw Internal("in the end there are {} {}, not {}", is, what, should);
  };
  machine_.objects().ForEach([](const Object& object) {
    throw Internal(
        "in the end there is object {}: state {}, {} referrers, {} holds, {} pins, {} "
        "lineage, kind {}, {} wait",
        ToString(object.id), static_cast<int>(object.state), object.referrers, object.holds,
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
  expect("workers", machine_.workers(), 0);
  if (machine_.scheduler().available() != machine_.scheduler().total()) {
    throw Internal("in the end {} of {} CPUs are free", machine_.scheduler().available().Get("cpu"),
                   machine_.scheduler().total().Get("cpu"));
  }
}

}  // namespace menger::simulation
