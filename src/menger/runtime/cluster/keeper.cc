#include "menger/runtime/cluster/keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/mutex.h"
#include "menger/runtime/cluster/ask_nodes.h"
#include "menger/runtime/cluster/cache_folder.h"
#include "menger/runtime/cluster/cluster_node.h"
#include "menger/runtime/cluster/kept_actors.h"
#include "menger/runtime/cluster/node_ids.h"
#include "menger/runtime/cluster/private_folder.h"
#include "menger/runtime/cluster/program_cache.h"
#include "menger/runtime/cluster/program_fetcher.h"
#include "menger/runtime/cluster/remote_store.h"

namespace menger {
namespace {

constexpr std::chrono::minutes kFetchMax{5};
constexpr std::chrono::seconds kAskMax{3};
constexpr std::chrono::seconds kFindMax{1};
constexpr std::chrono::milliseconds kLook{50};
// Where the program has left: calls that make actors may be on their way.
constexpr std::chrono::seconds kIdleMax{3};

// Of a program that is gone what it is, as the control store has it, and the nodes.
KeptProgram FetchLeft(const KeeperOptions& options, PeerStreams& streams, ProgramFetcher& fetcher,
                      const CacheFolder& folder, const Deadline& deadline) {
  RemoteStore store(streams, options.access.address);
  const std::vector<StoreResult> found =
      RunBatch(store, {StoreOperation::Get(StoreTable::kFunctions, options.left)}, deadline);
  const std::string& manifest = found.front().record.value;
  if (found.front().error) throw Error(*found.front().error);
  if (manifest.empty()) throw NotFound("the control store knows no program {}", options.left);
  std::vector<std::string> addresses;
  for (const StoreRecord& record : ScanAll(store, StoreTable::kNodes, "", deadline)) {
    const std::optional<NodeRecord> node = DecodeNodeRecord(record.key, record.value);
    if (node && node->job == 0 && !record.expired) addresses.push_back(node->address);
  }
  return fetcher.FetchFiles(streams, addresses, DecodeManifest(std::as_bytes(std::span(manifest))),
                            folder, deadline);
}

KeptProgram FetchProgram(const KeeperOptions& options, const CacheFolder& folder) {
  const auto fetcher = std::make_shared<ProgramFetcher>();
  PeerStreams streams(
      {.own = {.node = DrawNodeId()}, .token = options.access.token, .tls = options.access.tls});
  const Deadline deadline = Deadline::After(kFetchMax);
  return options.left.empty() ? fetcher->FetchFiles(streams, options.program, folder, deadline)
                              : FetchLeft(options, streams, *fetcher, folder, deadline);
}

}  // namespace

void Keep(const KeeperOptions& options) {
  const PrivateFolder files(CacheFolder(ProgramCacheFolder(options.cache_folder)));
  const KeptProgram program = FetchProgram(options, files.folder());
  std::atomic<bool> over{false};
  Mutex mutex;
  std::string ready;  // Guarded by mutex. What stands for it; "": it starts.
  ClusterNode cluster({.access = options.access,
                       .role = ClusterNodeOptions::Role::kDriver,
                       .program = program,
                       .keep =
                           [&](const NodeRecord& driver) {
                             if (NodeLife{driver.id, driver.epoch} != options.driver) {
                               throw NotFound("this keeper is not that program's");
                             }
                             const MutexLock lock(mutex);
                             return ready.empty() ? std::string(kKeeperStarts) : ready;
                           },
                       .on_over = [&over](const std::string&) { over = true; }});
  const NodeRecord self = cluster.Nodes().front();
  KeptActors actors(cluster.node(), {self.id, self.epoch}, cluster.store(), cluster.reader(),
                    program.manifest);
  const ObjectHandle stands_for =
      cluster.node().Put(1, [](std::span<std::byte> bytes) { bytes[0] = {}; }, {});
  if (options.left.empty()) {
    const ForeignName name{.object = stands_for.id(), .node = self.id, .epoch = self.epoch};
    {
      const MutexLock lock(mutex);
      ready = Describe(name);
    }
    options.on_ready(name);
  } else {
    actors.TakeOver();
  }
  Deadline idle = Deadline::After(kIdleMax);
  while (!idle.expired() && !options.is_stopped() && !over) {
    std::this_thread::sleep_for(kLook);
    const bool any_lives = actors.Look();
    if (any_lives || cluster.IsMember(options.driver)) idle = Deadline::After(kIdleMax);
  }
  if (over) throw Unavailable("the keeper of detached actors is no longer one of the cluster");
  if (idle.expired()) actors.ForgetProgram();
}

// ---- What programs and head say to each other.

std::string KeepQuestion(const NodeLife& driver) {
  return fmt::format("keep {} {}", ToString(driver.node), driver.epoch);
}

std::optional<NodeLife> DriverOfKeepQuestion(std::string_view question) {
  std::istringstream words{std::string(question)};
  std::string keep;
  std::string node;
  NodeLife driver;
  if (!(words >> keep >> node >> driver.epoch) || keep != "keep") return std::nullopt;
  const std::optional<Id> id = ParseId(node);
  if (!id || !words.eof()) return std::nullopt;
  driver.node = NodeId{*id};
  return driver;
}

std::string Describe(const ForeignName& keeper) {
  return fmt::format("node {} {} {}", ToString(keeper.node), keeper.epoch, ToString(keeper.object));
}

std::optional<ForeignName> DecodeKeeper(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string word;
  std::string node;
  std::string object;
  ForeignName keeper;
  if (!(words >> word >> node >> keeper.epoch >> object) || word != "node") return std::nullopt;
  const std::optional<Id> node_id = ParseId(node);
  const std::optional<Id> object_id = ParseId(object);
  if (!node_id || !object_id || !words.eof()) return std::nullopt;
  keeper.node = NodeId{*node_id};
  keeper.object = ObjectId{*object_id};
  return keeper;
}

std::string FormerKeepers::Find(const std::vector<NodeRecord>& nodes, const NodeLife& driver) {
  const MutexLock lock(mutex_);
  const auto known = known_.find(driver.node);
  if (known != known_.end()) {
    const std::optional<ForeignName> keeper = DecodeKeeper(known->second);
    const bool lives = keeper && std::ranges::any_of(nodes, [&keeper](const NodeRecord& node) {
                         return node.id == keeper->node && node.epoch == keeper->epoch;
                       });
    if (!lives) known->second.clear();
    return known->second;
  }
  std::vector<NodeRecord> drivers;
  std::ranges::copy_if(nodes, std::back_inserter(drivers), [&driver](const NodeRecord& node) {
    return node.job != 0 && node.id != driver.node;
  });
  std::string found;
  for (const NodeAnswer& answer :
       AskNodes(access_, drivers, KeepQuestion(driver), Deadline::After(kFindMax))) {
    if (!answer.failure) found = answer.text;
  }
  if (found != kKeeperStarts) known_.emplace(driver.node, found);
  return found;
}

std::optional<ForeignName> AskForKeeper(const ClusterAccess& access,
                                        const std::vector<NodeRecord>& nodes,
                                        const NodeLife& driver) {
  // Of several the others are gone, which may not have been seen yet.
  const NodeRecord* head = nullptr;
  for (const NodeRecord& node : nodes) {
    const bool is_head = node.resources.Get(kHeadResource) > 0;
    if (is_head && (head == nullptr || node.epoch > head->epoch)) head = &node;
  }
  if (head == nullptr) throw Unavailable("the head of the cluster is not there");
  const std::vector<NodeAnswer> answers =
      AskNodes(access, {*head}, KeepQuestion(driver), Deadline::After(kAskMax));
  const NodeAnswer& answer = answers.front();
  if (answer.failure) throw Error(*answer.failure);
  if (answer.text == kKeeperStarts) return std::nullopt;
  const std::optional<ForeignName> keeper = DecodeKeeper(answer.text);
  if (!keeper) throw FailedPrecondition("{}", answer.text);
  return keeper;
}

}  // namespace menger
