#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/memory_need.h"
#include "menger/cli/commands.h"
#include "menger/runtime/watching/job_socket.h"

// Looking at a job that runs: what it says of itself through its socket.
namespace menger {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kJobHelp =
    "Which job: its name (JOB-PROCESS) or the number of its process; default: the only one";

std::string Ask(const std::string& job, const std::string& question) {
  std::string answer;
  AskJob(
      FindJob(job), question, [&answer](std::string_view piece) { answer += piece; },
      Deadline::After(kPatience));
  return answer;
}

std::string Bytes(std::uint64_t bytes) { return MemoryText(static_cast<double>(bytes)); }

template <typename T = std::string>
T Field(const Json& object, const char* name) {
  return object.at(name).get<T>();
}

void PrintHead(const Json& status) {
  fmt::print("job {} of {}, process {}, for {:.1f} s\n", Field<std::uint64_t>(status, "job"),
             Field(status, "program"), Field<int>(status, "process"),
             Field<double>(status, "seconds"));
  const Json& tasks = status.at("tasks");
  fmt::print("tasks      {} waiting for arguments, {} ready, {} given to workers, {} kept\n",
             Field<std::uint64_t>(tasks, "waiting"), Field<std::uint64_t>(tasks, "ready"),
             Field<std::uint64_t>(tasks, "given"), Field<std::uint64_t>(tasks, "kept"));
  fmt::print("           {} finished ({:.0f} a second), {} failed, {} run again, {} rebuilt\n",
             Field<std::uint64_t>(tasks, "finished"), Field<double>(tasks, "finished_per_second"),
             Field<std::uint64_t>(tasks, "failed"), Field<std::uint64_t>(tasks, "retried"),
             Field<std::uint64_t>(tasks, "rebuilt"));
  fmt::print("actors     {}; {} made again, {} checkpoints, {} of their calls replayed\n",
             Field<std::uint64_t>(status, "actor_count"),
             Field<std::uint64_t>(status, "actors_restarted"),
             Field<std::uint64_t>(status, "checkpoints"), Field<std::uint64_t>(status, "replayed"));
  fmt::print("objects    {}; {} of {} in shared memory; {} on the disk; {} of lineage\n",
             Field<std::uint64_t>(status, "objects"),
             Bytes(Field<std::uint64_t>(status, "store_bytes")),
             Bytes(Field<std::uint64_t>(status, "store_bytes_max")),
             Bytes(Field<std::uint64_t>(status, "disk_bytes")),
             Bytes(Field<std::uint64_t>(status, "lineage_bytes")));
  fmt::print("resources ");
  for (const Json& resource : status.at("resources")) {
    fmt::print(" {}: {:g} of {:g} free", Field(resource, "name"), Field<double>(resource, "free"),
               Field<double>(resource, "total"));
  }
  fmt::print("\n");
  if (const auto groups = Field<std::uint64_t>(status, "placement_groups"); groups > 0) {
    fmt::print("           placement groups: {}, of which {} wait\n", groups,
               Field<std::uint64_t>(status, "placement_groups_waiting"));
  }
}

void PrintWorkers(const Json& workers) {
  fmt::print("\nworker  process  memory      queued  runs\n");
  for (const Json& worker : workers) {
    const auto memory = Field<std::uint64_t>(worker, "memory_bytes");
    std::string runs = Field(worker, "running");
    if (runs.empty()) {
      runs = "-";
    } else {
      runs += fmt::format("  {:.3f} s{}", Field<double>(worker, "running_seconds"),
                          Field<bool>(worker, "blocked") ? ", waits for objects" : "");
    }
    if (const std::string actor = Field(worker, "actor"); !actor.empty()) {
      runs += fmt::format("  (home of {})", actor);
    }
    fmt::print("{:<6}  {:<7}  {:<10}  {:<6}  {}\n", Field<int>(worker, "index"),
               Field<int>(worker, "process"), memory == 0 ? "-" : Bytes(memory),
               Field<std::uint64_t>(worker, "queued"), runs);
  }
}

void PrintActors(const Json& status) {
  const Json& actors = status.at("actors");
  if (actors.empty()) return;
  fmt::print("\nactor                             state       worker  waiting  restarts  name\n");
  for (const Json& actor : actors) {
    const int worker = Field<int>(actor, "worker");
    fmt::print("{}  {:<10}  {:<6}  {:<7}  {:<8}  {}\n", Field(actor, "id"), Field(actor, "state"),
               worker == 0 ? "-" : std::to_string(worker), Field<std::uint64_t>(actor, "waiting"),
               fmt::format("{}, {} left", Field<int>(actor, "restarts"),
                           Field<int>(actor, "restarts_left")),
               Field(actor, "name"));
  }
  const auto count = Field<std::size_t>(status, "actor_count");
  if (count > actors.size()) fmt::print("... and {} more\n", count - actors.size());
}

void PrintLosses(const Json& losses) {
  if (losses.empty()) return;
  fmt::print("\nlost\n");
  for (const Json& loss : losses) {
    const auto times = Field<std::uint64_t>(loss, "times");
    fmt::print("  {:.1f} s ago{}: {}\n", Field<double>(loss, "seconds_ago"),
               times > 1 ? fmt::format(", the last of {}", times) : "", Field(loss, "text"));
  }
}

struct StatusArguments {
  std::string job;
  bool metrics = false;
  bool json = false;
  bool names = false;
};

void StatusCommand(const StatusArguments& arguments) {
  if (arguments.names) {
    for (const std::string& name : RunningJobs()) fmt::print("{}\n", name);
    return;
  }
  const std::string answer = Ask(arguments.job, arguments.metrics ? "metrics" : "status");
  if (arguments.metrics || arguments.json) {
    fmt::print("{}", answer);
    return;
  }
  const Json status = Json::parse(answer);
  PrintHead(status);
  PrintWorkers(status.at("workers"));
  PrintActors(status);
  PrintLosses(status.at("losses"));
}

struct TimelineArguments {
  std::string out;
  std::string job;
};

void TimelineCommand(const TimelineArguments& arguments) {
  WriteFileAtomically(arguments.out, Ask(arguments.job, "timeline"));
  fmt::print(stderr, "{}: open it in https://ui.perfetto.dev or chrome://tracing\n", arguments.out);
}

}  // namespace

void AddStatusCommand(CLI::App& app, CommandContext&) {
  CLI::App* command = app.add_subcommand("status", "Look at a running job of the runtime");
  const auto arguments = std::make_shared<StatusArguments>();  // Shared with the callback.
  command->add_option("job", arguments->job, kJobHelp);
  command->add_flag("--metrics", arguments->metrics, "As Prometheus reads it (text format)");
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_flag("--names", arguments->names, "Names of the jobs that run alone, one a line");
  command->callback([arguments] { StatusCommand(*arguments); });
}

void AddTimelineCommand(CLI::App& app, CommandContext&) {
  CLI::App* command =
      app.add_subcommand("timeline", "Write what a running job did last, as a trace");
  const auto arguments = std::make_shared<TimelineArguments>();  // Shared with the callback.
  command->add_option("out", arguments->out, "The file to write (Chrome's trace format)")
      ->required();
  command->add_option("job", arguments->job, kJobHelp);
  command->callback([arguments] { TimelineCommand(*arguments); });
}

}  // namespace menger
