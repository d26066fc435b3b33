#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "menger/runtime/cluster/kept_actor.h"
#include "menger/runtime/cluster/program_manifest.h"
#include "menger/runtime/driver/local_node.h"

namespace menger {

// The detached actors of one keeper (keeper.h), in the control store, so that another keeper can
// make them again when this one is gone: with its machine, or alone.
//
// Kept are those that can be found by a name and may be restarted: their keeper's end costs one
// restart. A checkpointed actor goes on from its last checkpoint, which is written when it is
// there, not before a call's result is told: what was done since is lost, as with an actor without
// checkpoints all is. Calls of those who referred to it fail; by its name it is found again. Values
// that its arguments or its state name are kept, too; actors that they name are there as long as
// their owners are.
//
// Not kept are actors of placement groups, which end with their program, and those with more than
// kKeptActorBytesMax.
//
// All functions are called by one thread, which waits for the store and for values.
class KeptActors {
 public:
  // `node`, whose life is `self`, owns them. `self_as_reader`: its lease is that under which they
  // are written, 0 once its life is over, when it may write nothing. Node and store outlive this.
  KeptActors(LocalNode& node, const NodeLife& self, ControlStore& store,
             RecordReader self_as_reader, const ProgramManifest& manifest);

  // Makes those whose owners are gone again. Throws what the store does not answer with.
  void TakeOver();

  // Writes what has become of them since. What the store does not take is written by the next look.
  // False if no actor of this node lives, kept or not.
  bool Look();

  // None is here any longer: of the program, which no other keeper's actors have either, nothing
  // stays in the store.
  void ForgetProgram();

  // By which it is known, as ProgramsWithoutKeeper has it.
  static std::string NameOf(const ProgramManifest& manifest);

 private:
  // Of an actor that is in the store, or is to be.
  struct Kept {
    std::uint64_t lives = 0;
    std::string before;    // The key of its former owner's records, until it has its own.
    bool written = false;  // With these:
    std::uint32_t restarts = 0;
    ObjectId state;          // Not valid: there is no checkpoint.
    bool too_large = false;  // Its user was told.
  };
  struct Found;  // An actor of which something has changed.

  std::vector<Found> FindChanged();
  bool HasChanged(const Actor& actor) const;
  void Write(const Found& found);
  void WriteRecords(const std::string& key, const Kept& kept, std::string record);
  // All that the actor is made of; nothing if it is gone, or has more bytes than may be kept.
  std::optional<KeptActor> Read(const Found& found, Kept& kept);
  void ForgetDead();
  void Forget(const std::string& key);

  // An actor whose owner is gone.
  struct Left {
    StoreRecord record;  // Of kActors.
    KeptActor actor;
  };
  std::optional<Left> ReadLeft(StoreRecord record, const Deadline& deadline);
  bool HasItsName(const std::string& key, const KeptOwner& owner, const KeptActor& actor,
                  const Deadline& deadline);
  void Take(const Left& left);
  void Make(const Left& left, TaskId task);
  // Throws what one of them has failed with, and Unavailable where this process's life is over.
  void Do(std::vector<StoreOperation> batch);

  LocalNode& node_;
  const NodeLife self_;
  ControlStore& store_;
  const RecordReader reader_;
  const std::string manifest_;  // Encoded.
  const std::string program_;
  std::map<ActorId, Kept> kept_;
  std::set<ActorId> living_;  // As the last look found.
  bool any_lives_ = false;    // Likewise, of all.
  LeaseEpoch lease_ = 0;      // Under which they were written.
  bool behind_ = false;       // The store did not take what that was to write.
};

}  // namespace menger
