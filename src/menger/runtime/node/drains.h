#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string_view>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/peer_message.h"

namespace menger {

// How far a node is that will leave: what others still have of it, and what they have taken.
struct DrainProgress {
  std::size_t lent = 0;     // Workers, whose calls are under way or whose actors stay,
  std::size_t groups = 0;   // placement groups that have bundles here,
  std::size_t holders = 0;  // and nodes that need values which lie here.
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;  // Of these.

  bool done() const { return lent + groups + holders == 0; }
};

// Nodes that will leave, when nothing is lost by it.
//
// Such a node says so, and lends nothing more but for placement groups whose bundles it has: those
// go on for as long as it is there. Who has workers of it asks for the calls that they have not
// begun, which go elsewhere, and gives the workers back when the others are done; has his
// checkpointed actors that live there made again elsewhere (actors_moving.cc); and brings home
// those of his values that lie there alone. Once he needs nothing there he says so, until he does
// again: when all have, it can go. How long it waits for them is for others to say.
class Drains {
 public:
  explicit Drains(NodeParts& node) : node_(node) {}

  // ---- This node will leave.
  void Begin() { begun_ = true; }
  bool begun() const { return begun_; }
  bool MayLend(std::string_view scheduling) const {
    return !begun_ || scheduling.starts_with('@');  // In a group's bundle.
  }
  void LetsGo(Peer& peer, const PeerMessage& message);
  DrainProgress progress() const;

  // ---- Another will.
  void Leaves(Peer& peer);
  void Lent(PeerIndex node);                        // A worker of its.
  void Lies(PeerIndex node, const Object& object);  // The value was made there.
  void PeerDied(PeerIndex node);

  void Serve(Peer& peer);  // Tells it what there is to tell.

 private:
  struct Leaving {
    std::deque<ObjectId> values;    // That are to come home,
    std::vector<ObjectId> coming;   // and those on their way.
    bool all_known = false;         // No worker there makes others any longer.
    bool told = false;              // That it can go.
    std::uint64_t taken = 0;        // Values that have come,
    std::uint64_t taken_bytes = 0;  // of so many bytes.
  };

  void LookForValues(PeerIndex node, Leaving& leaving);
  void BringHome(Leaving& leaving);

  NodeParts& node_;
  bool begun_ = false;
  std::uint64_t values_ = 0;  // That others have taken.
  std::uint64_t bytes_ = 0;
  std::map<PeerIndex, Leaving> leaving_;
};

}  // namespace menger
