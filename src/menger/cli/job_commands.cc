#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/cli/cluster_options.h"
#include "menger/cli/cluster_view.h"
#include "menger/cli/commands.h"
#include "menger/cli/job_text.h"
#include "menger/runtime/watching/job_socket.h"

// Looking at a job that runs: what it says of itself through its socket.
namespace menger {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kJobHelp =
    "Which job: its name (JOB-PROCESS) or the number of its process; default: the only one. Of a "
    "cluster: the number of a job, or the id (its beginning) or name of a node";
constexpr const char* kAddressHelp =
    "HOST:PORT of a cluster's head, of which it is asked; default: MENGER_ADDRESS, else this "
    "machine, as `local` says";

std::string Ask(const std::string& job, const std::string& question) {
  std::string answer;
  AskJob(
      FindJob(job), question, [&answer](std::string_view piece) { answer += piece; },
      Deadline::After(kPatience));
  return answer;
}

struct StatusArguments {
  std::string job;
  bool metrics = false;
  bool json = false;
  bool names = false;
  RuntimeOptions access;  // To a cluster; as RuntimeOptions'.
};

void ClusterStatus(const StatusArguments& arguments, const ClusterAccess& access) {
  if (!arguments.job.empty()) {
    const std::string answer =
        AskMember(access, arguments.job, arguments.metrics ? "metrics" : "status");
    if (arguments.metrics || arguments.json) {
      fmt::print("{}", answer);
    } else {
      PrintJob(nlohmann::json::parse(answer));
    }
    return;
  }
  if (arguments.metrics) {
    throw InvalidArgument(
        "metrics are of one process of the cluster: name a job or a node, as `menger node list` "
        "does");
  }
  const ClusterView view = LookAtCluster(access);
  arguments.json ? fmt::print("{}", ToJson(view)) : Print(view);
}

void StatusCommand(const StatusArguments& arguments) {
  if (arguments.names) {
    for (const std::string& name : RunningJobs()) fmt::print("{}\n", name);
    return;
  }
  const ClusterAccess access = AccessOf(arguments.access);
  if (!access.address.empty()) return ClusterStatus(arguments, access);
  const std::string answer = Ask(arguments.job, arguments.metrics ? "metrics" : "status");
  if (arguments.metrics || arguments.json) {
    fmt::print("{}", answer);
    return;
  }
  PrintJob(nlohmann::json::parse(answer));
}

struct TimelineArguments {
  std::string out;
  std::string job;
  RuntimeOptions access;  // As of StatusArguments.
};

void TimelineCommand(const TimelineArguments& arguments) {
  const ClusterAccess access = AccessOf(arguments.access);
  WriteFileAtomically(arguments.out, access.address.empty()
                                         ? Ask(arguments.job, "timeline")
                                         : AskMember(access, arguments.job, "timeline"));
  fmt::print(stderr, "{}: open it in https://ui.perfetto.dev or chrome://tracing\n", arguments.out);
}

}  // namespace

void AddStatusCommand(CLI::App& app, CommandContext&) {
  CLI::App* command =
      app.add_subcommand("status", "Look at a running job of the runtime, or at a cluster");
  command->footer(R"(
  menger status                               the only job that runs on this machine
  menger status --address 127.0.0.1:7070      a cluster: its nodes, and the jobs that they work for
  menger status --address 127.0.0.1:7070 JOB  one of these jobs, by its number: all of it
Each process says of itself what it is asked, at its own address; who cannot be reached is named.
The cluster's token and TLS are those of `menger node --help`.
)");
  const auto arguments = std::make_shared<StatusArguments>();  // Shared with the callback.
  command->add_option("job", arguments->job, kJobHelp);
  command->add_flag("--metrics", arguments->metrics, "As Prometheus reads it (text format)");
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_flag("--names", arguments->names, "Names of the jobs that run alone, one a line");
  command->add_option("--address", arguments->access.address, kAddressHelp);
  AddTlsOptions(*command, arguments->access);
  command->callback([arguments] { StatusCommand(*arguments); });
}

void AddTimelineCommand(CLI::App& app, CommandContext&) {
  CLI::App* command =
      app.add_subcommand("timeline", "Write what a running job did last, as a trace");
  const auto arguments = std::make_shared<TimelineArguments>();  // Shared with the callback.
  command->add_option("out", arguments->out, "The file to write (Chrome's trace format)")
      ->required();
  command->add_option("job", arguments->job, kJobHelp);
  command->add_option("--address", arguments->access.address, kAddressHelp);
  AddTlsOptions(*command, arguments->access);
  command->callback([arguments] { TimelineCommand(*arguments); });
}

}  // namespace menger
