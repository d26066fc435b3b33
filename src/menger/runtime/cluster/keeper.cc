#include "menger/runtime/cluster/keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/runtime/cluster/ask_nodes.h"
#include "menger/runtime/cluster/cache_folder.h"
#include "menger/runtime/cluster/cluster_node.h"
#include "menger/runtime/cluster/node_ids.h"
#include "menger/runtime/cluster/program_fetcher.h"

namespace menger {
namespace {

constexpr std::chrono::minutes kFetchMax{5};
constexpr std::chrono::seconds kAskMax{5};
constexpr std::chrono::milliseconds kLook{100};
// Where the program has left: calls that make actors may be on their way.
constexpr std::chrono::seconds kIdleMax{3};

// The program's files, while the keeper lives.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& below)
      : path_((below.empty() ? DefaultProgramCacheFolder() : below) + "/kept-" +
              ToString(DrawNodeId())) {}
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

KeptProgram FetchProgram(const KeeperOptions& options, const CacheFolder& folder) {
  const auto fetcher = std::make_shared<ProgramFetcher>();
  PeerStreams streams(
      {.own = {.node = DrawNodeId()}, .token = options.access.token, .tls = options.access.tls});
  return fetcher->FetchFiles(streams, options.program, folder, Deadline::After(kFetchMax));
}

bool HasActors(LocalNode& node) {
  return std::ranges::any_of(node.Status().actors,
                             [](const auto& actor) { return actor.state != "dead"; });
}

bool IsThere(const ClusterNode& cluster, const std::string& program) {
  return std::ranges::any_of(cluster.Nodes(),
                             [&](const NodeRecord& node) { return node.address == program; });
}

}  // namespace

void Keep(const KeeperOptions& options) {
  const PrivateFolder folder(options.cache_folder);
  const CacheFolder files(folder.path());
  std::atomic<bool> over{false};
  ClusterNode cluster({.access = options.access,
                       .role = ClusterNodeOptions::Role::kDriver,
                       .program = FetchProgram(options, files),
                       .on_over = [&over](const std::string&) { over = true; }});
  LocalNode& node = cluster.node();
  const ObjectHandle stands_for =
      node.Put(1, [](std::span<std::byte> bytes) { bytes[0] = {}; }, {});
  const NodeRecord self = cluster.Nodes().front();
  options.on_ready({.object = stands_for.id(), .node = self.id, .epoch = self.epoch});
  Deadline idle = Deadline::After(kIdleMax);
  while (!idle.expired() && !options.is_stopped() && !over) {
    std::this_thread::sleep_for(kLook);
    if (IsThere(cluster, options.program) || HasActors(node)) idle = Deadline::After(kIdleMax);
  }
  if (over) throw Unavailable("the keeper of detached actors is no longer one of the cluster");
}

// ---- What programs and head say to each other.

std::optional<std::string> ProgramOfKeepQuestion(std::string_view question) {
  if (!question.starts_with(kKeepQuestion)) return std::nullopt;
  return std::string(question.substr(kKeepQuestion.size()));
}

std::string Describe(const ForeignName& keeper) {
  return fmt::format("node {} {} {}", ToString(keeper.node), keeper.epoch, ToString(keeper.object));
}

std::optional<ForeignName> DecodeKeeper(std::string_view text) {
  ForeignName keeper;
  unsigned long long numbers[5] = {};
  const int read = std::sscanf(std::string(text).c_str(), "node %16llx%16llx %llu %16llx%16llx",
                               &numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4]);
  if (read != 5) return std::nullopt;
  keeper.node = NodeId{Id{numbers[0], numbers[1]}};
  keeper.epoch = numbers[2];
  keeper.object = ObjectId{Id{numbers[3], numbers[4]}};
  return keeper;
}

std::optional<ForeignName> AskForKeeper(const ClusterAccess& access,
                                        const std::vector<NodeRecord>& nodes,
                                        const std::string& program) {
  const auto head = std::ranges::find_if(
      nodes, [](const NodeRecord& node) { return node.resources.Get(kHeadResource) > 0; });
  if (head == nodes.end()) throw Unavailable("the head of the cluster is not there");
  const std::vector<NodeAnswer> answers =
      AskNodes(access, {*head}, std::string(kKeepQuestion) + program, Deadline::After(kAskMax));
  const NodeAnswer& answer = answers.front();
  if (answer.failure) throw Error(*answer.failure);
  if (answer.text == kKeeperStarts) return std::nullopt;
  const std::optional<ForeignName> keeper = DecodeKeeper(answer.text);
  if (!keeper) throw Unavailable("{}", answer.text);
  return keeper;
}

}  // namespace menger
