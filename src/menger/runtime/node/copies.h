#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/scheduler.h"
#include "menger/runtime/node/transfer_paces.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Where values lie. A larger one lies where it was made, and comes to lie wherever it is read: a
// node pulls it once for all its workers. Its owner says from where: each place serves two pulls of
// a value at a time, those that have just got it serve the next ones, and so what all nodes read
// spreads like a tree. It is lost when its last copy is.
//
// Here is what the owner knows; a node that has a copy of another's value knows it as an object
// that the owner refers to (Peers::KeepFor), or as its own copy of an object that it refers to
// (ForeignObjects). These are two places (kOwnUse).
class Copies : public ValuePlaces {
 public:
  explicit Copies(NodeParts& node) : node_(node) {}

  bool IsAt(const Object& object, PeerIndex place) const override;
  double NanosecondsTo(const Object& object, PeerIndex place) const override;
  void Bring(Object& object, PeerIndex place) override;
  // What it is called there; 0: it does not lie there.
  std::uint64_t NameAt(const Object& object, PeerIndex place) const;

  // It was made there.
  void Add(Object& object, PeerIndex place, std::uint64_t name);
  // It does not lie there any longer.
  void Gone(Object& object, PeerIndex place);
  // What was pulled by that name has come: here to `extent`, or elsewhere. False if nobody wants it
  // any longer.
  bool Arrived(std::uint64_t pull, const SharedExtent& extent);
  void Failed(std::uint64_t pull);  // It has not: there was no such value.
  // There is no room for it where it was to go: what waits for it there fails.
  void Refused(std::uint64_t pull, const TaskFailure& cause);
  // A value that was on the disk is in memory.
  void Restored(Object& object);
  // What is pulled by that name; null if nobody wants it any longer.
  Object* Find(std::uint64_t pull) const;

  // Values that would be lost with the node: they lie nowhere else where they stay.
  std::vector<ObjectId> LostWith(PeerIndex node) const;
  bool MayBeLost(const Object& object) const;  // With nodes that will leave.

  void Forget(Object& object);  // The value is no more.
  // The node is gone, with what lay there.
  void PeerDied(PeerIndex node, const TaskFailure& cause);

 private:
  struct Copy {
    PeerIndex place = 0;
    std::uint64_t name = 0;
  };
  struct Pull {
    std::uint64_t name = 0;
    PeerIndex from = 0;
    PeerIndex to = 0;
    std::int64_t since = 0;
  };
  struct Places {
    std::vector<Copy> copies;        // Besides here; the newest last.
    std::vector<Pull> pulls;         // Under way,
    std::vector<PeerIndex> wanting;  // and those that wait for a source.
    // Pulls that have failed: not to be tried again.
    std::vector<std::pair<PeerIndex, PeerIndex>> failed;
  };
  using Objects = std::unordered_set<Object*, ObjectHash>;

  Places& PlacesOf(Object& object);
  static bool IsComing(const Places& places, PeerIndex place);
  void StartPulls(Object& object, Places& places);
  bool StartPull(Object& object, Places& places, PeerIndex to);
  bool FindSource(const Object& object, const Places& places, PeerIndex to, PeerIndex& from) const;
  void Order(const Object& object, const Pull& pull, std::uint64_t name_there);
  void EndPull(Object& object, Places& places, std::uint64_t name);
  void ForgetNode(Object& object, PeerIndex node, const TaskFailure& cause);

  NodeParts& node_;
  std::unordered_map<Object*, Places, ObjectHash> places_;
  std::unordered_map<std::uint64_t, Object*> pulls_;
  std::map<PeerIndex, Objects> of_node_;  // Whose places name it.
  std::uint64_t last_pull_ = 0;
  TransferPaces paces_;
};

}  // namespace menger
