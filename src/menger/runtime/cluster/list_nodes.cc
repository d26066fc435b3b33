#include "menger/runtime/cluster/list_nodes.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "menger/runtime/cluster/node_ids.h"
#include "menger/runtime/cluster/remote_store.h"

namespace menger {
namespace {

// Where nobody listens there is no more to wait for, unless the head is about to begin.
constexpr std::chrono::seconds kAbsentPatience{2};

std::vector<StoreRecord> ScanNodes(RemoteStore& store, const Deadline& deadline) {
  try {
    return ScanAll(
        store, StoreTable::kNodes, "",
        Deadline::After(std::min<std::chrono::nanoseconds>(kAbsentPatience, deadline.remaining())));
  } catch (const Error&) {
    const std::optional<Error> why = store.last_failure();
    if (deadline.expired() || (why && why->code() == ErrorCode::kNotFound)) throw;
  }
  return ScanAll(store, StoreTable::kNodes, "", deadline);
}

}  // namespace

std::vector<ListedNode> ListNodes(const ClusterAccess& access, const Deadline& deadline) {
  PeerStreams streams({.own = {.node = DrawNodeId()}, .token = access.token, .tls = access.tls});
  RemoteStore store(streams, access.address);
  std::vector<StoreRecord> records;
  try {
    records = ScanNodes(store, deadline);
  } catch (const Error&) {
    const std::optional<Error> why = store.last_failure();
    if (!why) throw;
    throw WithContext(*why, fmt::format("the cluster at {}", access.address));
  }
  std::vector<ListedNode> nodes;
  for (const StoreRecord& record : records) {
    std::optional<NodeRecord> node = DecodeNodeRecord(record.key, record.value);
    if (node) nodes.push_back({*std::move(node), record.expired});
  }
  std::ranges::sort(nodes, {}, [](const ListedNode& listed) { return listed.node.epoch; });
  return nodes;
}

}  // namespace menger
