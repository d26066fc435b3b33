#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/thread.h"
#include "menger/cli/cluster_options.h"
#include "menger/cli/cluster_view.h"
#include "menger/cli/commands.h"
#include "menger/cli/keepers.h"
#include "menger/cli/process_names.h"
#include "menger/runtime/cluster/cache_folder.h"
#include "menger/runtime/cluster/cluster_node.h"
#include "menger/runtime/cluster/keeper.h"
#include "menger/runtime/cluster/kept_actor.h"
#include "menger/runtime/cluster/list_nodes.h"
#include "menger/runtime/net/metrics_page.h"
#include "menger/runtime/redis/redis_journal.h"
#include "menger/training/stop_signals.h"

// A cluster of the runtime: `menger node` begins one or joins it, and says who is there.
namespace menger {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::seconds kKeepersLook{1};
constexpr std::chrono::seconds kPatience{10};  // Of somebody who asks at a prompt.
constexpr const char* kDefaultListen = "127.0.0.1:7070";

struct NodeArguments {
  bool head = false;
  std::string join;
  std::string listen;
  std::string name;
  double cpus = -1;
  double gpus = 0;
  std::string resources;
  std::uint64_t store_bytes = 0;
  std::string store;
  std::string cache;
  double drain_seconds = 30;
  std::string metrics;
  // As RuntimeOptions'.
  RuntimeOptions access;
};

OpenStoreJournal JournalAt(const std::string& store, const ClusterNodeOptions& options) {
  if (!options.access.address.empty()) {
    throw InvalidArgument("--store is the head's, which has the control state; a node has none");
  }
  return KeepInRedis({.address = RedisAddress::Parse(store),
                      .head = NameOfThisProcess(),
                      .head_lease = std::chrono::duration_cast<std::chrono::milliseconds>(
                          options.membership.lease * 2 / 5),
                      .has_ended = HasEnded});
}

// CLI11's own say it with 309 digits, and take "nan".
std::string CheckAmount(const std::string& text) {
  double amount = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && std::isfinite(amount) && amount >= 0) return "";
  return fmt::format("'{}' is no number from 0 on", text);
}

std::string CheckDrainSeconds(const std::string& text) {
  constexpr double kMost = 31'536'000;  // A year.
  std::string wrong = CheckAmount(text);
  if (!wrong.empty() || std::stod(text) <= kMost) return wrong;
  return fmt::format("'{}' is too long: {:.0f} seconds at most, which is a year", text, kMost);
}

std::string CheckStoreBytes(const std::string& text) {
  constexpr double kLeast = 1e6;       // Or there is no room for any larger value.
  constexpr std::size_t kDigits = 18;  // More are no number that is one.
  std::string wrong = CheckAmount(text);
  if (!wrong.empty()) return wrong;
  if (text.find_first_not_of("0123456789") != std::string::npos || text.size() > kDigits) {
    return fmt::format("'{}' is no number of bytes, as 8000000000 is one", text);
  }
  if (std::stod(text) < kLeast) {
    return fmt::format("'{}' is too little: {:.0f} bytes at least", text, kLeast);
  }
  return "";
}

// As of a variable that is not set.
std::string CheckNotEmpty(const std::string& text) {
  return text.empty() ? "is empty; its default is had by leaving it out" : "";
}

// Calls ask for them in their own words, which --cpus and --gpus are.
void CheckThatOthersAreNamed(const Resources& resources) {
  for (const Resources::Named& amount : resources.amounts()) {
    std::string name = amount.name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (amount.name.starts_with("node:")) {
      throw InvalidArgument(
          "--resources has '{}'; a name that begins with \"node:\" is one node's, which has it of "
          "itself",
          Resources::Shown(amount.name));
    }
    for (const char* const own : {"cpu", "gpu"}) {
      if (name != own && name != fmt::format("{}s", own)) continue;
      throw InvalidArgument("--resources has '{}'; say it as --{}s {:g}", amount.name, own,
                            resources.Get(amount.name));
    }
  }
}

// Where somebody listens everywhere he is not reached by that.
void CheckReachable(const std::string& listen) {
  const std::string host = ParseHostAndPort(listen).host;
  if (host != "0.0.0.0" && host != "::") return;
  throw InvalidArgument(
      "--listen is '{}', by which no other node finds this one; give an address that this machine "
      "has, as 10.0.0.7:7070",
      listen);
}

ClusterNodeOptions OptionsOf(const NodeArguments& arguments) {
  if (arguments.head == !arguments.join.empty()) {
    throw InvalidArgument(
        "either --head begins a cluster or --join HOST:PORT joins one; {} of them were given",
        arguments.head ? "both" : "none");
  }
  ClusterNodeOptions options;
  RuntimeOptions access = arguments.access;
  access.address = arguments.head ? "local" : arguments.join;
  options.access = AccessOf(access);
  options.listen = arguments.listen;
  if (arguments.head && options.listen.empty()) options.listen = kDefaultListen;
  if (!options.listen.empty()) CheckReachable(options.listen);
  options.name = arguments.name;
  RuntimeOptions& runtime = options.runtime;
  runtime.store_bytes_max = arguments.store_bytes;
  if (!arguments.resources.empty()) runtime.resources = Resources::Parse(arguments.resources);
  CheckThatOthersAreNamed(runtime.resources);
  runtime.resources.Set("cpu", arguments.cpus >= 0 ? arguments.cpus : AvailableCpus());
  runtime.resources.Set("gpu", arguments.gpus);
  CheckOptions(runtime);
  options.cache_folder = arguments.cache;
  if (!arguments.cache.empty()) const CacheFolder usable(arguments.cache);  // Or it says why not.
  if (!arguments.store.empty()) options.journal = JournalAt(arguments.store, options);
  return options;
}

std::string Describe(const Resources& resources) {
  std::string text;
  for (const Resources::Named& amount : resources.amounts()) {
    if (amount.name.starts_with("node:")) continue;  // By which calls ask for this one.
    text +=
        fmt::format("{}{}={:g}", text.empty() ? "" : " ", amount.name, resources.Get(amount.name));
  }
  return text.empty() ? "nothing" : text;
}

// Until others have nothing here any longer, but for so long at the most.
void Drain(ClusterNode& node, std::chrono::duration<double> most, const std::atomic<bool>& over) {
  const Deadline deadline =
      Deadline::After(std::chrono::duration_cast<std::chrono::nanoseconds>(most)).OrWhen(over);
  node.Drain();
  DrainProgress left = node.HowFarDrained();
  for (; !left.done() && !deadline.expired(); left = node.HowFarDrained()) {
    std::this_thread::sleep_for(kLook);
  }
  if (left.done()) {
    return LogInfo("drained: programs took {} values of {} bytes", left.values, left.bytes);
  }
  // Who is not done has not said what he has taken.
  LogWarning(
      "not drained in time: with this node end {} workers with calls or actors, {} placement "
      "groups, and what {} programs have not taken yet (how much is not counted); those that need "
      "nothing of it any longer took {} values of {} bytes",
      left.lent, left.groups, left.holders, left.values, left.bytes);
}

// Null if nobody asked for it. A port alone is this machine's.
std::unique_ptr<MetricsPage> ServeMetrics(const std::string& address, LocalNode& node) {
  if (address.empty()) return nullptr;
  const bool is_port = address.find_first_not_of("0123456789") == std::string::npos;
  if (!is_port && address.find(':') == std::string::npos) {
    throw InvalidArgument(
        "--metrics is '{}'; give a port, as 9090, or an address, as 10.0.0.7:9090", address);
  }
  auto page = std::make_unique<MetricsPage>(is_port ? "127.0.0.1:" + address : address,
                                            [&node] { return node.Metrics(); });
  LogInfo("metrics are at http://{}/metrics", page->address());
  return page;
}

// A head's.
std::unique_ptr<Keepers> KeepersOf(const NodeArguments& arguments, ClusterNodeOptions& options) {
  if (!arguments.head) return nullptr;
  std::vector<std::string> shared;
  const auto add = [&shared](const char* name, const std::string& value) {
    if (!value.empty()) shared.insert(shared.end(), {name, value});
  };
  add("--cache", arguments.cache);
  add("--tls-certificate", arguments.access.tls_certificate);
  add("--tls-key", arguments.access.tls_key);
  add("--tls-authorities", arguments.access.tls_authorities);
  auto keepers = std::make_unique<Keepers>(std::move(shared));
  options.keep = [&keepers = *keepers](const NodeRecord& driver) { return keepers.Ask(driver); };
  return keepers;
}

void SucceedKeepers(ClusterNode& node, Keepers& keepers) {
  try {
    keepers.Succeed(ProgramsWithoutKeeper(node.store(), node.reader(), Deadline::After(kPatience)));
  } catch (const Error& error) {  // The next look finds them.
    LogWarning("whether all detached actors have a keeper is not known: {}", error.what());
  }
}

// Until a signal, or until `over`.
void LookAfter(ClusterNode& node, Keepers* keepers, const StopSignals& signals,
               const std::atomic<bool>& over) {
  // A head that has taken another's place waits for those who live on, as long as NodeRoll does.
  Deadline look = Deadline::After(MembershipOptions().lease * 3 / 2);
  while (signals.received() == 0 && !over) {
    std::this_thread::sleep_for(kLook);
    if (keepers == nullptr || !look.expired()) continue;
    SucceedKeepers(node, *keepers);
    look = Deadline::After(kKeepersLook);
  }
}

void Serve(const NodeArguments& arguments) {
  ClusterNodeOptions options = OptionsOf(arguments);
  std::atomic<bool> over{false};
  std::string why;  // Written before `over`.
  options.on_over = [&over, &why](const std::string& text) {
    why = text;
    over = true;
  };
  const StopSignals signals;  // Before threads, so that all of them leave signals to it.
  options.is_stopped = [&signals] { return signals.received() != 0; };
  const std::unique_ptr<Keepers> keepers = KeepersOf(arguments, options);
  ClusterNode node(options);
  if (keepers != nullptr) keepers->Begin(node.address());
  const std::unique_ptr<MetricsPage> page = ServeMetrics(arguments.metrics, node.node());
  fmt::print("{}\n", node.address());
  std::fflush(stdout);
  LogInfo("{} at {}, with {}", arguments.head ? "head of a cluster" : "node of a cluster",
          node.address(), Describe(options.runtime.resources));
  if (arguments.head) {
    LogInfo("others join it by `menger node --join {0}`, programs by MENGER_ADDRESS={0}",
            node.address());
  }
  LookAfter(node, keepers.get(), signals, over);
  if (over) throw Unavailable("this node is no longer one of the cluster: {}", why);
  const char* const signal = StopSignals::NameOf(signals.received());
  if (!arguments.head && arguments.drain_seconds > 0) {
    LogInfo("{}: draining for {:g} s at most; one signal more ends it at once", signal,
            arguments.drain_seconds);
    Drain(node, std::chrono::duration<double>(arguments.drain_seconds), over);
  }
  if (over) throw Unavailable("this node is no longer one of the cluster: {}", why);
  LogInfo("{}: leaving the cluster", signal);
  if (keepers != nullptr) keepers->End();
}

void List(const NodeArguments& arguments) {
  const std::vector<ListedNode> nodes =
      ListNodes(ClusterOf(arguments.access), Deadline::After(kPatience));
  fmt::print("{:<32}  {:<21}  {:<8}  {:<12}  {}\n", "node", "address", "state", "name", "has");
  for (const ListedNode& listed : nodes) {
    const NodeRecord& node = listed.node;
    const std::string has =
        node.job != 0 ? fmt::format("job {}", node.job) : Describe(node.resources);
    fmt::print("{:<32}  {:<21}  {:<8}  {:<12}  {}\n", ToString(node.id), node.address,
               LeaseStateName(listed), node.name.empty() ? "-" : node.name, has);
  }
}

void AddList(CLI::App& node) {
  CLI::App* command = node.add_subcommand("list", "Say who is in a cluster");
  const auto arguments = std::make_shared<NodeArguments>();  // Shared with the callback.
  command->add_option("address", arguments->access.address,
                      "HOST:PORT of the head; default: MENGER_ADDRESS");
  AddTlsOptions(*command, arguments->access);
  command->callback([arguments] { List(*arguments); });
}

// What a head starts; nobody else does.
void RunKeeper(const NodeArguments& arguments, KeeperOptions options) {
  std::signal(SIGPIPE, SIG_IGN);  // The head that reads what it prints may be killed.
  const StopSignals signals;
  options.access = ClusterOf(arguments.access);
  options.cache_folder = arguments.cache;
  options.on_ready = [](const ForeignName& keeper) {
    fmt::print("{}\n", Describe(keeper));
    std::fflush(stdout);
  };
  options.is_stopped = [&signals] { return signals.received() != 0; };
  Keep(options);
}

CLI::App& AddKeeperCommand(CLI::App& node, const char* name, const char* help,
                           NodeArguments& arguments) {
  CLI::App& command = *node.add_subcommand(name, help);
  command.group("");
  command.add_option("head", arguments.access.address, "HOST:PORT of the head")->required();
  command.add_option("--cache", arguments.cache, "As of the node");
  AddTlsOptions(command, arguments.access);
  return command;
}

void AddKeep(CLI::App& node) {
  struct Program {
    std::string address;
    std::string node;
    std::uint64_t epoch = 0;
  };
  const auto arguments = std::make_shared<NodeArguments>();  // Shared with the callback, as that.
  const auto program = std::make_shared<Program>();
  CLI::App& command =
      AddKeeperCommand(node, "keep", "Own the detached actors of a program", *arguments);
  command.add_option("program", program->address, "HOST:PORT of the program")->required();
  command.add_option("node", program->node, "Its id")->required();
  command.add_option("epoch", program->epoch, "Its epoch")->required();
  command.callback([arguments, program] {
    const std::optional<Id> id = ParseId(program->node);
    if (!id) throw InvalidArgument("the program's id is '{}'; it is none", program->node);
    RunKeeper(*arguments, {.program = program->address, .driver = {NodeId{*id}, program->epoch}});
  });
}

void AddSucceed(CLI::App& node) {
  const auto arguments = std::make_shared<NodeArguments>();  // Shared with the callback, as that.
  const auto program = std::make_shared<std::string>();
  CLI::App& command = AddKeeperCommand(
      node, "succeed", "Own the detached actors of a program whose keeper is gone", *arguments);
  command.add_option("program", *program, "The hash of its manifest")->required();
  command.callback([arguments, program] { RunKeeper(*arguments, {.left = *program}); });
}

}  // namespace

void AddNodeCommand(CLI::App& app, CommandContext&) {
  CLI::App* command =
      app.add_subcommand("node", "Begin a cluster of the runtime, or join one with this machine");
  command->footer(R"(
Runs until SIGTERM or Ctrl-C; a node that has joined drains then: it begins no further calls, and leaves once
those under way are done and nothing is lost by it. Its address is the first line that it prints.
  menger node --head                              begin one, for this machine alone, at 127.0.0.1:7070
  menger node --join 127.0.0.1:7070 --cpus 4      one more node
  menger node list 127.0.0.1:7070                 who is there
  menger status --address 127.0.0.1:7070          what they do
  MENGER_ADDRESS=127.0.0.1:7070 ./program         its calls are done by the nodes
Whoever has the cluster's token may run programs on its nodes: MENGER_CLUSTER_TOKEN has it, or the file
MENGER_CLUSTER_TOKEN_FILE. Beyond this machine it is needed, and so is TLS.
)");
  const auto arguments = std::make_shared<NodeArguments>();  // Shared with the callback.
  command->add_flag("--head", arguments->head,
                    "Begin a cluster: it has its control state, and ends with this node");
  command->add_option("--join", arguments->join, "Join the cluster of the head at HOST:PORT")
      ->check(CheckNotEmpty);
  command
      ->add_option("--listen", arguments->listen,
                   "Where others reach this node, HOST:PORT; port 0 for a free one. Default: of "
                   "a head 127.0.0.1:7070, else the way to the head")
      ->check(CheckNotEmpty);
  command
      ->add_option("--name", arguments->name,
                   "What people call it, 100 bytes at most; no other node may have it")
      ->check(CheckNotEmpty);
  command->add_option("--cpus", arguments->cpus, "CPUs that calls may have; default: all")
      ->check(CheckAmount)
      ->default_str("");
  command->add_option("--gpus", arguments->gpus, "GPUs that calls may have")->check(CheckAmount);
  command->add_option("--resources", arguments->resources,
                      "What else it has, as \"camera=1 license=2\"");
  command
      ->add_option("--store-bytes", arguments->store_bytes,
                   "Of values in shared memory, a million at least; default: 30% of the memory")
      ->check(CheckStoreBytes)
      ->default_str("");
  command
      ->add_option(
          "--store", arguments->store,
          "Of a head: keep the control state in a Redis, too, at redis://HOST:PORT/DATABASE "
          "or, where sentinels know the primary, redis-sentinel://HOST:PORT,.../DATABASE#NAME: "
          "then the head may be started again. Default: in memory alone")
      ->check(CheckNotEmpty);
  command
      ->add_option("--cache", arguments->cache,
                   "Where programs of drivers are kept; default: ~/.cache/menger/programs")
      ->check(CheckNotEmpty);
  command
      ->add_option(
          "--drain-seconds", arguments->drain_seconds,
          "How long a node that has joined may take to leave without a loss, once it is told "
          "to; 0: it leaves at once")
      ->check(CheckDrainSeconds)
      ->capture_default_str();
  command->add_option("--metrics", arguments->metrics,
                      "Serve metrics for Prometheus at http://HOST:PORT/metrics; a port alone is "
                      "this machine's. Whoever can connect may read them. Default: not at all");
  AddTlsOptions(*command, arguments->access);
  AddList(*command);
  AddKeep(*command);
  AddSucceed(*command);
  command->callback([command, arguments] {
    if (command->get_subcommands().empty()) Serve(*arguments);
  });
}

}  // namespace menger
