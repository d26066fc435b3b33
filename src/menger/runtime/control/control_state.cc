#include "menger/runtime/control/control_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "menger/base/log.h"
#include "menger/runtime/calls/function.h"
#include "menger/runtime/control/store_log.h"

namespace menger {
namespace {

constexpr std::size_t kChangesMax = 1000;  // Of a kind, gathered at once: the node waits meanwhile.
constexpr std::uint64_t kEventsMax = 4096;
constexpr std::chrono::seconds kPatience{5};

std::string Text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

EmbeddedStoreOptions StoreOptions(const std::string& folder) {
  EmbeddedStoreOptions options;
  if (!folder.empty()) options.journal = KeepInLog({.folder = folder});
  return options;
}

}  // namespace

ControlState::ControlState(std::uint64_t job, const std::string& folder)
    : job_(job), prefix_(fmt::format("{}/", job)), store_(StoreOptions(folder)), writer_(store_) {
  if (!folder.empty()) DeleteWhatWasLeft();
  PutJob("running");
  writer_.Flush();
}

void ControlState::DeleteWhatWasLeft() {
  for (const StoreTable table : {StoreTable::kNodes, StoreTable::kFunctions, StoreTable::kActors,
                                 StoreTable::kNames, StoreTable::kObjects, StoreTable::kEvents}) {
    std::vector<StoreOperation> batch;
    for (StoreRecord& left : ScanAll(store_, table, prefix_, Deadline::After(kPatience))) {
      batch.push_back(StoreOperation::Delete(table, std::move(left.key)));
    }
    if (!batch.empty()) RunBatch(store_, std::move(batch), Deadline::After(kPatience));
  }
}

void ControlState::PutJob(const char* state) {
  writer_.Put(StoreTable::kJobs, std::to_string(job_),
              Text({{"state", state},
                    {"process", getpid()},
                    {"program", program_invocation_short_name},
                    {"build", fmt::format("{:016x}", ProgramBuild())}}));
}

void ControlState::Gather(NodeMachine& machine) {
  GatherActors(machine);
  GatherWorkers(machine);
  GatherFunctions(machine);
  GatherObjects(machine);
  GatherEvents(machine);
}

void ControlState::GatherActors(NodeMachine& machine) {
  for (std::size_t written = 0; written < kChangesMax && !changed_actors_.empty();) {
    const ActorId id = changed_actors_.extract(changed_actors_.begin()).value();
    const std::string key = prefix_ + ToString(id);
    const Actor* const actor = machine.FindActor(id);
    const auto name = actor_names_.find(id);
    const bool dead = actor == nullptr || actor->state == Actor::State::kDead;
    if (dead && name != actor_names_.end()) {
      writer_.Delete(StoreTable::kNames, prefix_ + name->second);
      actor_names_.erase(name);
    } else if (!dead && !actor->name.empty() && name == actor_names_.end()) {
      writer_.Put(StoreTable::kNames, prefix_ + actor->name, ToString(id));
      actor_names_.emplace(id, actor->name);
    }
    if (actor == nullptr) {
      if (actors_.erase(id) > 0) writer_.Delete(StoreTable::kActors, key);
      continue;
    }
    actors_.insert(id);
    ++written;
    writer_.Put(StoreTable::kActors, key,
                Text({{"name", actor->name},
                      {"class", machine.NameOf(*actor->construction)},
                      {"state", ActorStateName(actor->state)},
                      {"restarts_left", actor->restarts},
                      {"worker", actor->worker != nullptr ? actor->worker->index : 0}}));
  }
}

void ControlState::GatherWorkers(NodeMachine& machine) {
  const NodeEvents& events = machine.events();
  const std::uint64_t seen =
      events.count(NodeEventKind::kWorkerStarted) + events.count(NodeEventKind::kWorkerDied);
  if (seen == worker_events_) return;
  worker_events_ = seen;
  const auto key = [this](WorkerIndex index) { return fmt::format("{}worker/{}", prefix_, index); };
  std::erase_if(workers_, [&](WorkerIndex index) {
    if (machine.FindWorker(index) != nullptr) return false;
    writer_.Delete(StoreTable::kNodes, key(index));
    return true;
  });
  for (const WorkerIndex index : machine.WorkerIndices()) {
    if (!workers_.insert(index).second) continue;
    writer_.Put(StoreTable::kNodes, key(index), Text({{"driver", getpid()}}));
  }
}

void ControlState::GatherFunctions(const NodeMachine& machine) {
  const auto& functions = machine.scheduler().times();
  if (functions.size() == function_count_) return;
  function_count_ = functions.size();
  for (const auto& [name, times] : functions) {
    const FunctionId& id = name.function;
    std::string key =
        fmt::format("{}{:016x}/{:016x}/{:016x}", prefix_, id.module, id.offset, name.kind);
    if (!functions_.insert(key).second) continue;
    writer_.Put(StoreTable::kFunctions, std::move(key),
                Text({{"name", machine.events().names()[times.name_number]}}));
  }
}

void ControlState::GatherObjects(NodeMachine& machine) {
  const auto key = [this](ObjectId id) { return prefix_ + ToString(id); };
  const auto is_there = [&machine](ObjectId id) {
    const Object* const object = machine.objects().Find(id);
    return object != nullptr && object->state == Object::State::kReady;
  };
  std::erase_if(objects_, [&](const auto& object) {
    if (is_there(object.first)) return false;
    writer_.Delete(StoreTable::kObjects, key(object.first));
    return true;
  });
  for (const ObjectId id : new_objects_) {
    if (!is_there(id)) continue;
    const std::uint64_t bytes = machine.objects().Find(id)->value.extent.bytes;
    if (!objects_.emplace(id, bytes).second) continue;
    writer_.Put(StoreTable::kObjects, key(id), Text({{"bytes", bytes}}));
  }
  new_objects_.clear();
}

void ControlState::GatherEvents(const NodeMachine& machine) {
  std::vector<NodeEvent> events;
  const std::uint64_t next = machine.events().others().Copy(events_, kChangesMax, events);
  std::uint64_t number = next - events.size();  // Some may be gone.
  for (const NodeEvent& event : events) {
    writer_.Put(StoreTable::kEvents, fmt::format("{}{:04}", prefix_, number % kEventsMax),
                Text({{"number", number},
                      {"nanoseconds", event.time},
                      {"kind", NodeEventKindName(event.kind)},
                      {"worker", event.worker},
                      {"subject", fmt::format("{:016x}", event.subject)},
                      {"name", machine.events().names()[event.name]}}));
    ++number;
  }
  events_ = next;
}

void ControlState::Finish() {
  PutJob("ended");
  const Deadline deadline = Deadline::After(kPatience);
  for (writer_.Flush(); writer_.waiting() > 0 && !deadline.expired(); writer_.Flush()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (writer_.waiting() == 0) return;
  LogWarning("the control store does not know the last {} changes of job {}", writer_.waiting(),
             job_);
}

}  // namespace menger
