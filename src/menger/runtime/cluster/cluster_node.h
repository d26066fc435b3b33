#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/runtime/calls/runtime_options.h"
#include "menger/runtime/cluster/cluster_access.h"
#include "menger/runtime/cluster/kept_actor.h"
#include "menger/runtime/cluster/program_fetcher.h"
#include "menger/runtime/control/membership.h"
#include "menger/runtime/control/store_journal.h"
#include "menger/runtime/driver/local_node.h"

namespace menger {

// Tells workers of which node they are: its id, as NodeRecord has it.
inline constexpr char kNodeIdVariable[] = "MENGER_NODE_ID";

struct ClusterNodeOptions {
  using Role = LocalNode::Place::Role;

  // Where the head is; of the head itself the address is "".
  ClusterAccess access;
  Role role = Role::kNode;
  std::string listen;  // "": a free port at the address by which the head is reached.
  std::string name;    // That no other node has; "" for none.
  // Without the role kNode `job` names the job; 0 for one that no other has.
  RuntimeOptions runtime;
  MembershipOptions membership;
  std::string cache_folder;  // Of programs; "": DefaultProgramCacheFolder().
  // Of a driver whose workers run another process's program: that, instead of this one's own.
  std::optional<KeptProgram> program;
  // Of a head: where the control state is kept, too; empty: nowhere else.
  OpenStoreJournal journal;
  // Answers a KeepQuestion (keeper.h) of or about that driver. A head has a keeper started for it,
  // and says what has become of that; a keeper says what stands for it, if it is that driver's.
  // Empty: there are none.
  std::function<std::string(const NodeRecord& driver)> keep;
  // Asked while it joins: once it says so, the constructor throws Cancelled. Empty: it never does.
  std::function<bool()> is_stopped;
  // This node's life is over although nobody wished so: called once, on a thread of its own, which
  // must not end the node. The next thing to do is to end the process.
  std::function<void(const std::string& why)> on_over;
};

// By which calls ask for one node: it has 1 of it. A head has 1 of the other, too.
std::string NodeResource(const NodeId& node);
inline constexpr char kHeadResource[] = "node:__internal_head__";

// A process of a cluster, as head, node or driver: the LocalNode that it embeds, its place among
// the members, and its streams to them.
//
// The head has the control store in its memory. With a journal of it a cluster outlives its head:
// the next one, at the same address, goes on with what that has, if it comes before leases are
// over.
class ClusterNode {
 public:
  // Joins. Throws what opening the journal throws, InvalidArgument for options, FailedPrecondition
  // for a wrong token, a name that another node has, or a job that runs already, Unavailable and
  // DeadlineExceeded where the head cannot be reached in time, Cancelled where it is stopped
  // before.
  explicit ClusterNode(ClusterNodeOptions options);
  // Leaves: the others know at once.
  ~ClusterNode();
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  LocalNode& node();
  // Where others find it.
  const std::string& address() const;
  // It will leave: it lends nothing more, and the others take what they would miss (drains.h). What
  // they still have of it: where it leaves before they have nothing, they lose that.
  void Drain();
  DrainProgress HowFarDrained() const;
  // Members, as far as this one knows, itself first.
  std::vector<NodeRecord> Nodes() const;
  // Also one that is gone for this node, until its lease is over: it may still act as a member.
  bool IsMember(const NodeLife& life) const;
  // The cluster's, and this node as who reads there: without a lease once its life is over.
  ControlStore& store();
  RecordReader reader() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace menger
