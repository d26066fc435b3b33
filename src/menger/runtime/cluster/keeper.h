#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/runtime/cluster/cluster_access.h"
#include "menger/runtime/control/node_record.h"
#include "menger/runtime/net/handshake.h"
#include "menger/runtime/node/peer_message.h"

namespace menger {

// Detached actors outlive the program that makes them, so another process must own them: its
// keeper. It is a driver of the cluster like the program, with the same files and variables but
// without a main of its own; it makes the actors when the program asks for that, calls them for
// whoever finds them by their names, makes them again when their nodes die, and ends when the
// program has left and none of them lives.
//
// The head starts it when a program makes its first detached actor: the program asks the head
// (KeepQuestion, on the lane of questions), the head starts a process, `menger node keep`, which
// says what stands for it. A head that has taken another's place asks the drivers first: one of
// them may be the keeper that was started by the head before.
//
// What it keeps outlives it, too: the control store knows how its actors are made and what they
// were at their last checkpoints (kept_actors.h), and nodes have the program's files. When it is
// gone the head starts another, `menger node succeed`, which makes them again.

// What a keeper is told, and tells.
struct KeeperOptions {
  ClusterAccess access;
  std::string program;       // The address of the driver,
  NodeLife driver;           // and which one it is: another may get the address.
  std::string left;          // Instead of both: the program whose keepers are gone, by its hash.
  std::string cache_folder;  // Where the program's files lie meanwhile, in a folder of their own.
  // It is ready: what stands for it. Not called where it has no driver.
  std::function<void(const ForeignName& keeper)> on_ready;
  std::function<bool()> is_stopped;
};

// Does all of that, and removes what is left of keepers that were killed; returns when it has
// nothing to keep, or is stopped. Throws Unavailable where the program or the cluster is gone.
void Keep(const KeeperOptions& options);

// ---- What programs and head say to each other of keepers.

inline constexpr std::string_view kKeeperStarts = "starts";

// "keep NODE EPOCH", of a program.
std::string KeepQuestion(const NodeLife& driver);
std::optional<NodeLife> DriverOfKeepQuestion(std::string_view question);

// "node NODE EPOCH OBJECT"
std::string Describe(const ForeignName& keeper);
// Nothing, if `text` is none.
std::optional<ForeignName> DecodeKeeper(std::string_view text);

// The keepers that a head has started whose place another has taken, for that one. Any thread.
class FormerKeepers {
 public:
  explicit FormerKeepers(ClusterAccess access) : access_(std::move(access)) {}

  // What stands for that of `driver`, or kKeeperStarts, as a member of `nodes` says, each of which
  // is asked once; "" if there is none.
  std::string Find(const std::vector<NodeRecord>& nodes, const NodeLife& driver);

 private:
  const ClusterAccess access_;
  Mutex mutex_;
  std::map<NodeId, std::string> known_ MENGER_GUARDED_BY(mutex_);  // By the programs' ids.
};

// Asks the head, who is among `nodes`, for that of `driver`. Nothing while the keeper starts.
// Throws FailedPrecondition with what the head says why there is none, and Unavailable or
// DeadlineExceeded where the head says nothing.
std::optional<ForeignName> AskForKeeper(const ClusterAccess& access,
                                        const std::vector<NodeRecord>& nodes,
                                        const NodeLife& driver);

}  // namespace menger
