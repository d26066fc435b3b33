#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/node_status.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Placement groups. A reservation is a call that no worker does: its result is there when its
// resources are, and they are kept while somebody refers to it. Each call in the group waits for
// that result and holds it.
//
// Bundles that do not fit here, or are to be apart, are on other nodes: they are prepared there,
// all or none; then calls in them get workers that are lent from those bundles. What a node has
// that dies is placed anew, where its strategy lets it be (groups_moving.cc): calls in it wait. A
// group ends where no node has room for that, even if all were free, for as long as calls wait for
// nodes that may come.
class Groups {
 public:
  explicit Groups(NodeParts& node) : node_(node) {}

  void Ask(Task& reservation);  // Its turn has come.
  // Those that have waited for longest come first. One for which calls are to be held back; or
  // null.
  const Group* Serve();
  std::optional<std::int64_t> PatienceEnds() const;

  // ---- Calls in a group.
  static bool IsInGroup(const SpecHeader& header) {
    return header.home.valid() && header.kind != CallKind::kMethod;
  }
  // Where it is to be scheduled; null if its group was removed: then its object has an error.
  // Throws InvalidArgument if it asks for more than the group has.
  SchedulingClass* ClassFor(const Task& task);
  // False if it was removed meanwhile: the error comes as one of an argument does.
  bool Lives(Task& task);
  // A call that is made again after everybody has left its group takes what it needs of the node.
  void AwaitAgain(Task& task);

  void Release(const Object& object);  // Nobody refers to it any longer; neither do calls.
  // Its resources are free, and its calls end: those that run, too, with their workers.
  void Remove(Object& object);

  // ---- Other nodes.
  static bool IsAt(const SchedulingClass& scheduling, const Peer& peer);
  // How calls of the class are asked for there; and which class that is, null if none any longer.
  static std::string NameFor(const SchedulingClass& scheduling, const Peer& peer);
  SchedulingClass* OwnClass(std::string_view name);
  // The same where the bundles are. Throws InvalidArgument.
  SchedulingClass* ClassOf(const Peer& owner, std::string_view name);
  void ReserveFor(Peer& owner, const PeerMessage& message);
  void ReleaseOf(Peer& owner, std::uint64_t number);
  void Answered(Peer& peer, const PeerMessage& message);
  void PeerDied(Peer& peer, const TaskFailure& cause);

  Resources Elsewhere() const;  // What other nodes have set aside for groups of this one.

  bool Contains(ObjectId id) const { return groups_.contains(id); }
  std::size_t size() const { return groups_.size(); }
  std::size_t waiting() const { return waiting_.size(); }
  void FillStatus(NodeStatus& status) const;

 private:
  struct Node {
    PeerIndex index = 0;
    Resources free;
    int bundles = 0;
  };
  std::vector<Node> Nodes(bool in_all);
  void CheckThatItMayBe(Group& group);  // Throws InvalidArgument.
  // Places for those bundles; nothing if there are none now.
  static std::optional<std::vector<PeerIndex>> Choose(const Group& group,
                                                      const std::vector<std::size_t>& bundles,
                                                      std::vector<Node> nodes);
  static Node* NodeFor(const Group& group, const Resources& bundle, std::vector<Node>& nodes);
  static void SetPlaces(Group& group, std::vector<PeerIndex> places);
  bool TryToSetAside(Group& group);
  void AskToReserve(PeerIndex place, std::uint64_t number, const Group& group,
                    const std::vector<std::size_t>& bundles);
  void ReleaseElsewhere(const Group& group);
  void GiveUp(Group& group);
  void Pause(Group& group) const;
  void Refused(Group& group, const Peer& peer, const std::vector<std::size_t>& bundles) const;
  void DoubtOthers(Group& group);
  void Commit(Group& group);
  Group* FindAsked(std::uint64_t number);
  void Free(const Group& group);
  void End(Object& object, FailureKind kind, ErrorCode code, const std::string& why);
  void EndActorsIn(ObjectId group, std::string_view why);

  // ---- Bundles whose nodes are gone.
  static std::vector<std::size_t> HomelessIn(const Group& group);
  void Lose(Group& group, const Peer& dead, const TaskFailure& cause);
  std::vector<Node> NodesBut(const Group& group, bool in_all);
  void MoveAll();
  bool Move(Group& group);  // False: there will be no place.
  void Moved(Group& group, const Peer& peer, const PeerMessage& message);

  NodeParts& node_;
  std::unordered_map<ObjectId, std::unique_ptr<Group>, IdHash> groups_;  // By what stands for it.
  std::vector<Group*> waiting_;                                          // In their order.
  std::vector<Group*> moving_;  // Some of whose bundles are nowhere.
  std::uint64_t last_ = 0;
  std::uint64_t last_asked_ = 0;
};

}  // namespace menger
