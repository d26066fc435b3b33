#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/clock.h"
#include "menger/runtime/control/control_store.h"
#include "menger/runtime/net/handshake.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/values/ids.h"

namespace menger {

// What the control store keeps of a detached actor, so that it outlives its owner (kept_actors.h):
//
//   kFunctions  PROGRAM  the manifest of its program, by whose hash that is known
//   kActors     ACTOR    whose it is, bound to the owner's lease
//   kObjects    ACTOR    how it is made, and what it was at its last checkpoint
//
// That of the owner is written when the others are there, and goes before them. Who takes an actor
// over writes himself into it first, with the name that he gives it, and once that has records of
// its own these go.

// Of kActors.
struct KeptOwner {
  NodeLife owner;  // A keeper, in one life.
  std::string program;
  ActorId actor;  // What it is there.
};

// An object that an actor is made of, that its state is, or that one of these names.
struct KeptObject {
  ForeignName name;
  std::optional<std::vector<std::byte>> bytes;  // None of what has no value, as another actor.
  std::vector<ObjectId> inner;                  // What its value names, in order.
};

// Of kObjects.
struct KeptActor {
  std::uint64_t lives = 0;              // How often it was taken over from an owner that was gone.
  std::uint32_t restarts = 0;           // That are left.
  std::vector<std::byte> construction;  // The TaskSpec of the call that makes it.
  std::optional<ObjectId> state;        // Its last checkpoint.
  std::vector<KeptObject> objects;      // All that these name, and what that names.
};

// What one record may have, so that it is a request of a RemoteStore.
inline constexpr std::size_t kKeptActorBytesMax = std::size_t{7} << 20;

// As the store has it.
std::string Encode(const KeptActor& actor);
// Nothing, if `value` is none.
std::optional<KeptActor> DecodeKeptActor(std::string_view value);

// Likewise.
std::string Encode(const KeptOwner& owner);
std::optional<KeptOwner> DecodeKeptOwner(std::string_view value);

// Who looks at the records of others, and what he knows of these.
struct RecordReader {
  std::function<LeaseEpoch()> lease;  // His own; 0: he has none.
  std::function<bool(const NodeLife& life)> is_member;
};

// Whether a record that is bound to a lease of `holder` counts: that is not over, or is one of
// before a fail-over, after which the store knows none, and `holder` is there.
bool Counts(const StoreRecord& record, const NodeLife& holder, const RecordReader& reader);

// The programs that have actors whose owners are gone, each once. Throws what the store does not
// answer with.
std::vector<std::string> ProgramsWithoutKeeper(ControlStore& store, const RecordReader& reader,
                                               const Deadline& deadline);

}  // namespace menger
