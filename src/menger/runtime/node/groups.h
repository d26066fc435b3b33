#pragma once

#include <optional>

#include "menger/runtime/node/node_records.h"

namespace menger {

// Placement groups. A reservation is a call that no worker does: its result is there when its
// resources are, and they are kept while somebody refers to it. Each call in the group waits for
// that result and holds it.
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

  bool Contains(ObjectId id) const { return groups_.contains(id); }
  std::size_t size() const { return groups_.size(); }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  void EndActorsIn(ObjectId group);

  NodeParts& node_;
  std::unordered_map<ObjectId, std::unique_ptr<Group>, IdHash> groups_;  // By what stands for it.
  std::vector<Group*> waiting_;                                          // In their order.
  std::uint64_t last_ = 0;
};

}  // namespace menger
