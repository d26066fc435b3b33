#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/error.h"
#include "menger/runtime/calls/function.h"
#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/peer_message.h"

namespace menger {

struct NodeParts;

// An actor by its name: what stands for it, and of which class it is.
struct NamedActor {
  ForeignName object;
  ActorId actor;
  std::uint64_t actor_class = 0;  // SpecHeader::callee of its construction, which is
  FunctionId construction;        // a call of this.
};

// What is asked of those who keep the names of a cluster (NodeEffects::AskName), in this order for
// each name.
struct NameQuestion {
  enum class Kind : std::uint8_t {
    kClaim,    // The name shall be this actor's, unless another has it.
    kRelease,  // It is that actor's no longer. There is no answer.
    kLookUp,   // Whose is it?
  };
  Kind kind = Kind::kLookUp;
  std::string name;
  NamedActor actor;  // kClaim, kRelease.
};

// Whose the name is now: nobody's, or, with an error, unknown.
struct NameAnswer {
  std::optional<NamedActor> holder;
  std::optional<Error> error;
};

// Names of actors, as whoever looks for one finds it. A name with " @" in it ("counter @training":
// the name, then what Ray calls its namespace) is one in the whole cluster: the control store says
// whose it is, and programs find each other's actors by it. All others are this owner's alone.
//
// The construction of an actor waits until the name is its own: of two that are made at once under
// one name, one is never begun. Who looks for the name meanwhile is answered then.
class SharedNames {
 public:
  explicit SharedNames(NodeParts& node) : node_(node) {}

  // ---- Actors of this owner.
  void Claim(Actor& actor);           // Before its construction may begin.
  void Release(const Actor& actor);   // It has ended; its name is nobody's here any longer.
  void Lost(const NamedActor& lost);  // The cluster gives its name to another's: it ends.

  // ---- Who looks for one.
  // NodeEffects::Named follows, perhaps before this returns, unless Unask comes first.
  void Find(const Watch& asker, std::string_view name);
  void Unask(const Watch& asker);

  void Answered(const NameQuestion& question, const NameAnswer& answer);

 private:
  bool IsShared(std::string_view name) const;
  NamedActor Describe(const Actor& actor) const;
  void Claimed(const NameQuestion& question, const NameAnswer& answer);
  void Tell(const std::string& name, const NameAnswer& answer);
  void TellOne(const Watch& asker, const NameAnswer& answer);

  NodeParts& node_;
  std::map<std::string, std::vector<Watch>, std::less<>> askers_;  // Who wait for an answer.
};

}  // namespace menger
