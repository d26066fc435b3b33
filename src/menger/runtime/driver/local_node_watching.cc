#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "menger/base/child_process.h"
#include "menger/base/log.h"
#include "menger/runtime/driver/local_node.h"

// What a node says of itself to whoever looks at the job (job_socket.h), and of its losses to the
// log.
namespace menger {
namespace {

constexpr std::size_t kEventsAtOnce = 4096;  // Copied under the lock: some microseconds.
constexpr std::size_t kCallsAtOnce = 256;    // Likewise.
constexpr std::size_t kShortIdLetters = 8;
constexpr std::size_t kLinesMax = 1000;  // Kept for a log that nobody reads.

// "was killed by SIGSEGV" of "its worker was killed by SIGSEGV".
std::string_view WithoutSubject(std::string_view cause) {
  constexpr std::string_view kSubject = "its worker ";
  if (cause.starts_with(kSubject)) cause.remove_prefix(kSubject.size());
  return cause;
}

}  // namespace

std::string LocalNode::NameOfFunction(FunctionId function) {
  try {
    return functions_.Find(function).name();
  } catch (const Error&) {
    return "";  // Of another build: the call will fail and say so.
  }
}

void LocalNode::WorkerLost(const Worker& worker, const Task* ran, std::size_t begun,
                           const TaskFailure& cause) {
  if (cause.kind == FailureKind::kNodeDied) losses_.Count(FailureKindName(cause.kind));
  if (cause.worker.empty()) return;
  losses_.Count(cause.kind == FailureKind::kWorkerDied ? WithoutSubject(cause.text)
                                                       : FailureKindName(cause.kind));
  std::string text = fmt::format("{} {}", cause.worker, WithoutSubject(cause.text));
  std::string_view subject = "no call";
  if (ran != nullptr) {
    subject = machine_.NameOf(*ran);
    text += fmt::format(", while it ran {}", subject);
    if (begun > 1) text += fmt::format(" and {} other call{}", begun - 1, begun > 2 ? "s" : "");
  }
  if (const Actor* const actor = worker.actor) {
    text += fmt::format("; its actor {} {}", machine_.NameOf(*actor->construction),
                        actor->restarts > 0 ? "is made again" : "is dead");
  }
  losses_.Add(MonotonicNanoseconds(), subject, text);
}

// Under the lock. Whoever reads the log may be slow: the caretaker waits for him, and nobody else.
void LocalNode::Warn(std::string_view text) {
  if (lines_.size() < kLinesMax) lines_.emplace_back(text);
}

void LocalNode::WriteLines() {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(node_mutex_);
    lines.swap(lines_);
  }
  for (const std::string& line : lines) LogWarning("{}", line);
  if (lines.size() == kLinesMax)
    LogWarning("further warnings of the runtime were not written down");
}

NodeStatus LocalNode::Status() {
  NodeStatus status;
  status.job = options_.job;
  status.process = getpid();
  status.program = program_invocation_short_name;
  {
    const std::lock_guard lock(node_mutex_);
    const std::int64_t now = MonotonicNanoseconds();
    machine_.SetTime(now);
    machine_.FillStatus(status);
    status.seconds = static_cast<double>(now - started_at_) * 1e-9;
    status.tasks.finished_per_second = finished_rate_.PerSecond(now, machine_.counts().finished);
    status.store_bytes = store_.bytes_used();
    status.store_bytes_max = store_.bytes_max();
    const Spiller::Counts spiller = spiller_->counts();
    status.disk_bytes = spiller.disk_bytes;
    status.spilled_bytes = spiller.spilled_bytes;
    status.restored_bytes = spiller.restored_bytes;
    for (const LossLog::Loss& loss : losses_.losses()) {
      status.losses.push_back({.seconds_ago = static_cast<double>(now - loss.time) * 1e-9,
                               .times = loss.times,
                               .text = loss.text});
    }
    status.causes.insert(losses_.causes().begin(), losses_.causes().end());
    if (neighbours_ != nullptr) {
      const Neighbours::Traffic& traffic = neighbours_->traffic();
      status.calls_for_others = traffic.calls;
      status.pulled_bytes = traffic.pulled_bytes;
      status.served_bytes = traffic.served_bytes;
      status.shown_bytes = traffic.shown_bytes;
    }
    for (NodeStatus::WorkerStatus& worker : status.workers) {
      worker.process = team_->ProcessOf(worker.index);
    }
  }
  for (NodeStatus::WorkerStatus& worker : status.workers) {
    if (worker.process != status.process) worker.memory_bytes = OwnMemory(worker.process);
  }
  return status;
}

std::string LocalNode::Metrics() {
  MetricsText text;
  AddMetrics(Status(), text);
  if (place_ && place_->add_metrics) place_->add_metrics(text);
  const std::lock_guard lock(node_mutex_);
  AddMetrics(machine_.events(), text);
  return text.text();
}

void LocalNode::WriteTimeline(FunctionRef<void(std::string_view piece)> write) {
  std::vector<NodeEvent> events;
  std::vector<std::string> names;
  NodeStatus status;
  std::uint64_t next = 0;
  for (bool more = true; more;) {
    const std::lock_guard lock(node_mutex_);
    const EventRing& tasks = machine_.events().tasks();
    next = tasks.Copy(next, kEventsAtOnce, events);
    more = next < tasks.written() && !stopping();
    if (more) continue;
    machine_.CopyRunning(events);
    machine_.events().others().Copy(0, SIZE_MAX, events);
    names = machine_.events().names();
    machine_.FillStatus(status);
  }
  menger::WriteTimeline(events, names, PlacesOf(events, names, status), write);
}

// Of another node's worker its first event has the id, and while it lives its status. Of one that
// is gone, and of which the start is no longer known, nobody knows.
WorkerPlaces LocalNode::PlacesOf(std::span<const NodeEvent> events,
                                 std::span<const std::string> names,
                                 const NodeStatus& status) const {
  WorkerPlaces places;
  for (const NodeEvent& event : events) {
    if (event.kind == NodeEventKind::kWorkerStarted && event.name != 0) {
      places[event.worker] = names[event.name];
    }
  }
  for (const NodeStatus::WorkerStatus& worker : status.workers) {
    if (!worker.node.empty()) places[worker.index] = worker.node;
  }
  if (places.empty() || !place_ || !place_->members) return places;
  std::map<std::string, std::string> known;
  for (const NodeRecord& node : place_->members()) known[ToString(node.id)] = node.name;
  for (auto& [worker, place] : places) {
    const std::string& name = known[place];
    const std::string id = place.substr(0, kShortIdLetters);
    place = name.empty() ? "node " + id : fmt::format("node {} ({})", name, id);
  }
  return places;
}

std::string LocalNode::Calls() {
  std::vector<NodeStatus::CallStatus> calls;
  std::size_t next = 0;
  do {
    const std::lock_guard lock(node_mutex_);
    next = machine_.CopyCalls(next, kCallsAtOnce, calls);
  } while (next != 0 && calls.size() < NodeStatus::kCallsMax && !stopping());
  return ToJson(calls);
}

std::string LocalNode::Nodes() {
  return ToJson(place_ && place_->members ? place_->members() : std::vector<NodeRecord>());
}

std::string LocalNode::Names() {
  const nlohmann::json json = {
      {"names", place_ && place_->names ? place_->names() : std::vector<std::string>()}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

void LocalNode::Answer(std::string_view question, FunctionRef<void(std::string_view piece)> write) {
  if (question == "status") return write(ToJson(Status()));
  if (question == "calls") return write(Calls());
  if (question == "nodes") return write(Nodes());
  if (question == "names") return write(Names());
  if (question == "metrics") return write(Metrics());
  if (question == "timeline") return WriteTimeline(write);
  throw InvalidArgument(
      "it knows nothing of '{}', only of status, calls, nodes, names, metrics and timeline",
      question);
}

// A job that nobody can look at runs as well.
void LocalNode::StartAnswering() {
  try {
    socket_ = std::make_unique<JobSocket>(
        options_.job,
        [this](std::string_view question, JobSocket::Write write) { Answer(question, write); });
  } catch (const Error& error) {
    LogWarning("`menger status` will not find this job: {}", error.what());
  }
}

}  // namespace menger
