#include "menger/runtime/node/node_status.h"

#include <nlohmann/json.hpp>

namespace menger {
namespace {

using Json = nlohmann::ordered_json;

Json WorkersJson(const NodeStatus& status) {
  Json workers = Json::array();
  for (const NodeStatus::WorkerStatus& worker : status.workers) {
    workers.push_back({{"index", worker.index},
                       {"node", worker.node},
                       {"lent_to", worker.lent_to},
                       {"guest", worker.guest},
                       {"process", worker.process},
                       {"memory_bytes", worker.memory_bytes},
                       {"actor", worker.actor},
                       {"running", worker.running},
                       {"running_seconds", worker.running_seconds},
                       {"queued", worker.queued},
                       {"blocked", worker.blocked}});
  }
  return workers;
}

Json ActorsJson(const NodeStatus& status) {
  Json actors = Json::array();
  for (const NodeStatus::ActorStatus& actor : status.actors) {
    actors.push_back({{"id", actor.id},
                      {"name", actor.name},
                      {"named", actor.named},
                      {"state", actor.state},
                      {"restarts", actor.restarts},
                      {"restarts_left", actor.restarts_left},
                      {"waiting", actor.waiting},
                      {"worker", actor.worker}});
  }
  return actors;
}

Json GroupsJson(const NodeStatus& status) {
  Json groups = Json::array();
  for (const NodeStatus::GroupStatus& group : status.group_list) {
    Json nodes = Json::array();
    for (const std::optional<std::string>& node : group.nodes) {
      nodes.push_back(node ? Json(*node) : Json(nullptr));
    }
    groups.push_back({{"id", group.id}, {"state", group.state}, {"nodes", nodes}});
  }
  return groups;
}

Json TasksJson(const NodeStatus::TaskStatus& tasks) {
  return {{"waiting", tasks.waiting},     {"ready", tasks.ready},
          {"given", tasks.given},         {"kept", tasks.kept},
          {"submitted", tasks.submitted}, {"finished", tasks.finished},
          {"failed", tasks.failed},       {"retried", tasks.retried},
          {"rebuilt", tasks.rebuilt},     {"finished_per_second", tasks.finished_per_second}};
}

double AsDouble(std::uint64_t value) { return static_cast<double>(value); }

void AddTaskMetrics(const NodeStatus::TaskStatus& tasks, MetricsText& text) {
  text.Family("menger_tasks", MetricKind::kGauge, "Calls that are known now, by state.");
  text.Sample({{"state", "waiting"}}, AsDouble(tasks.waiting));
  text.Sample({{"state", "ready"}}, AsDouble(tasks.ready));
  text.Sample({{"state", "given"}}, AsDouble(tasks.given));
  text.Sample({{"state", "kept"}}, AsDouble(tasks.kept));
  text.Family("menger_tasks_total", MetricKind::kCounter, "What has become of calls.");
  text.Sample({{"what", "submitted"}}, AsDouble(tasks.submitted));
  text.Sample({{"what", "finished"}}, AsDouble(tasks.finished));
  text.Sample({{"what", "failed"}}, AsDouble(tasks.failed));
  text.Sample({{"what", "retried"}}, AsDouble(tasks.retried));
  text.Sample({{"what", "rebuilt"}}, AsDouble(tasks.rebuilt));
}

void AddActorMetrics(const NodeStatus& status, MetricsText& text) {
  text.Family("menger_actors", MetricKind::kGauge, "Actors that somebody refers to.");
  text.Sample({}, AsDouble(status.actor_count));
  text.Family("menger_actors_total", MetricKind::kCounter, "What was done so that none is lost.");
  text.Sample({{"what", "restarted"}}, AsDouble(status.actors_restarted));
  text.Sample({{"what", "checkpoints"}}, AsDouble(status.checkpoints));
  text.Sample({{"what", "calls_replayed"}}, AsDouble(status.replayed));
}

void AddWorkerMetrics(const NodeStatus& status, MetricsText& text) {
  text.Family("menger_workers", MetricKind::kGauge, "Workers that live.");
  text.Sample({}, AsDouble(status.workers.size()));
  text.Family("menger_worker_memory_bytes", MetricKind::kGauge,
              "Memory of a worker process that is its own.");
  for (const NodeStatus::WorkerStatus& worker : status.workers) {
    if (worker.memory_bytes == 0) continue;
    text.Sample({{"worker", std::to_string(worker.index)}}, AsDouble(worker.memory_bytes));
  }
}

// Whose they are, and for whom they work.
void AddUseMetrics(const NodeStatus& status, MetricsText& text) {
  int own = 0;
  int lent = 0;
  int waiting = 0;
  int borrowed = 0;
  for (const NodeStatus::WorkerStatus& worker : status.workers) {
    ++(!worker.node.empty()      ? borrowed
       : !worker.lent_to.empty() ? lent
       : worker.guest            ? waiting
                                 : own);
  }
  text.Family("menger_workers_by_use", MetricKind::kGauge,
              "Workers: own and not lent, lent to another node, those of another node's program "
              "that wait to be lent, and another node's that this one has.");
  text.Sample({{"use", "own"}}, own);
  text.Sample({{"use", "lent"}}, lent);
  text.Sample({{"use", "guest"}}, waiting);
  text.Sample({{"use", "borrowed"}}, borrowed);
}

void AddExchangeMetrics(const NodeStatus& status, MetricsText& text) {
  text.Family("menger_calls_for_others_total", MetricKind::kCounter,
              "Calls of other nodes that workers of this one have ended.");
  text.Sample({}, AsDouble(status.calls_for_others));
  text.Family("menger_value_bytes_total", MetricKind::kCounter,
              "Values that were brought from other nodes, or to them.");
  text.Sample({{"way", "pulled"}}, AsDouble(status.pulled_bytes));
  text.Sample({{"way", "served"}}, AsDouble(status.served_bytes));
  text.Sample({{"way", "shown"}}, AsDouble(status.shown_bytes));
  text.Family("menger_losses_total", MetricKind::kCounter, "Workers that were lost.");
  for (const auto& [cause, count] : status.causes) text.Sample({{"cause", cause}}, AsDouble(count));
}

}  // namespace

const char* ActorStateName(Actor::State state) {
  switch (state) {
    case Actor::State::kPending:
      return "pending";
    case Actor::State::kAlive:
      return "alive";
    case Actor::State::kRestarting:
      return "restarting";
    case Actor::State::kDead:
      return "dead";
  }
  return "unknown";
}

std::string ToJson(const NodeStatus& status) {
  Json resources = Json::array();
  for (const NodeStatus::ResourceStatus& resource : status.resources) {
    resources.push_back(
        {{"name", resource.name}, {"total", resource.total}, {"free", resource.free}});
  }
  Json borrowed = Json::array();
  for (const NodeStatus::BorrowedStatus& each : status.borrowed) {
    borrowed.push_back({{"name", each.name}, {"amount", each.amount}});
  }
  Json losses = Json::array();
  for (const NodeStatus::LossStatus& loss : status.losses) {
    losses.push_back(
        {{"seconds_ago", loss.seconds_ago}, {"times", loss.times}, {"text", loss.text}});
  }
  const Json json = {{"job", status.job},
                     {"process", status.process},
                     {"program", status.program},
                     {"seconds", status.seconds},
                     {"workers", WorkersJson(status)},
                     {"tasks", TasksJson(status.tasks)},
                     {"actor_count", status.actor_count},
                     {"actors_restarted", status.actors_restarted},
                     {"checkpoints", status.checkpoints},
                     {"replayed", status.replayed},
                     {"actors", ActorsJson(status)},
                     {"placement_groups", status.groups},
                     {"placement_groups_waiting", status.groups_waiting},
                     {"groups", GroupsJson(status)},
                     {"objects", status.objects},
                     {"store_bytes", status.store_bytes},
                     {"store_bytes_max", status.store_bytes_max},
                     {"disk_bytes", status.disk_bytes},
                     {"spilled_bytes", status.spilled_bytes},
                     {"restored_bytes", status.restored_bytes},
                     {"lineage_bytes", status.lineage_bytes},
                     {"resources", resources},
                     {"borrowed", borrowed},
                     {"losses", losses},
                     {"causes", status.causes},
                     {"calls_for_others", status.calls_for_others},
                     {"pulled_bytes", status.pulled_bytes},
                     {"served_bytes", status.served_bytes},
                     {"shown_bytes", status.shown_bytes}};
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string ToJson(const std::vector<NodeStatus::CallStatus>& calls) {
  Json all = Json::array();
  for (const NodeStatus::CallStatus& call : calls) {
    all.push_back({{"id", call.id},
                   {"name", call.name},
                   {"state", call.state},
                   {"actor", call.actor},
                   {"constructs", call.constructs},
                   {"worker", call.worker},
                   {"attempt", call.attempt}});
  }
  return Json{{"calls", all}}.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) +
         "\n";
}

void AddMetrics(const NodeStatus& status, MetricsText& text) {
  AddTaskMetrics(status.tasks, text);
  AddActorMetrics(status, text);
  AddWorkerMetrics(status, text);
  AddUseMetrics(status, text);
  AddExchangeMetrics(status, text);
  text.Family("menger_placement_groups", MetricKind::kGauge, "Resources that are set aside.");
  text.Sample({{"state", "created"}}, AsDouble(status.groups - status.groups_waiting));
  text.Sample({{"state", "waiting"}}, AsDouble(status.groups_waiting));
  text.Family("menger_objects", MetricKind::kGauge, "Values that are known.");
  text.Sample({}, AsDouble(status.objects));
  text.Family("menger_store_bytes", MetricKind::kGauge, "Values in shared memory.");
  text.Sample({}, AsDouble(status.store_bytes));
  text.Family("menger_store_bytes_max", MetricKind::kGauge, "What these may have.");
  text.Sample({}, AsDouble(status.store_bytes_max));
  text.Family("menger_disk_bytes", MetricKind::kGauge, "Values on the disk.");
  text.Sample({}, AsDouble(status.disk_bytes));
  text.Family("menger_spilled_bytes_total", MetricKind::kCounter, "Written to the disk.");
  text.Sample({}, AsDouble(status.spilled_bytes));
  text.Family("menger_restored_bytes_total", MetricKind::kCounter, "Read from it.");
  text.Sample({}, AsDouble(status.restored_bytes));
  text.Family("menger_lineage_bytes", MetricKind::kGauge, "Calls kept to make results again.");
  text.Sample({}, AsDouble(status.lineage_bytes));
  text.Family("menger_resource", MetricKind::kGauge, "What calls may use.");
  for (const NodeStatus::ResourceStatus& resource : status.resources) {
    text.Sample({{"name", resource.name}, {"amount", "total"}}, resource.total);
    text.Sample({{"name", resource.name}, {"amount", "free"}}, resource.free);
  }
}

}  // namespace menger
