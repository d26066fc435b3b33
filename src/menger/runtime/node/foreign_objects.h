#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Objects of other owners: where several drivers share a cluster, each node owns what its own
// driver's calls make, and may refer to what others own, since somebody gave it a name, or a value
// or a call that it was told names it.
//
// For its owner a node that refers to an object is one process more, whose references are counted
// (Peer::process). Who tells a node of an object counts for it if he owns that object; else the
// node tells its owner itself (kRefer), and keeps what brought the name until the owner knows: so
// no object ends while its name is on the way. References are dropped by the node, when the last of
// its processes, calls and values has gone; what only its kept calls would need again its owner
// keeps as it keeps what its own would need (lineage). A node's end drops its own; an owner's end
// makes those of its objects whose value is not here an error (kOwnerDied), for those that wait,
// too.
//
// Nobody is told of an object before its owner knows that this node refers to it: what a call gives
// that was made of another's actor is known there when the call has come. Values and calls that
// name such an object wait.
//
// What an object is is asked of its owner only when somebody here needs it, and a larger value is
// brought here once (Copies). A call of another's actor is made by that one, as if a worker of its
// own had called; what it gives belongs to it.
class ForeignObjects {
 public:
  explicit ForeignObjects(NodeParts& node) : node_(node) {}

  // ---- As NodeMachine's.
  Object& Refer(ProcessIndex process, const ForeignName& name);
  ForeignName NameOf(const Object& object) const;
  bool IsOwn(const ForeignName& name) const;
  bool IsRegistered(const Object& object) const;
  bool IsOrphan(const Object& object) const;  // Its owner is gone.
  using Life = std::pair<NodeId, std::uint64_t>;
  bool IsOver(const Life& life) const;
  void LifeIsOver(NodeId node, std::uint64_t epoch);

  // ---- What this node needs of others.
  // Whoever needs an object that is not ready, or a value that is not here. Again changes nothing.
  // Of an owner that is gone the object is an error at once.
  void Ask(Object& object);
  void Fetch(Object& object);
  // The call is one of another's actor, or makes one that shall be another's. `worker`: whose call
  // makes it, if any.
  bool IsForAnother(const SpecHeader& header) const;
  void Forward(ProcessIndex process, const Worker* worker, const TaskSpec& spec);
  void Cancel(Object& object, bool force, bool may_restart = false);  // Of an actor: it is killed.
  void Freed(Object& object);      // The value is not here any longer,
  void Forgotten(Object& object);  // and nobody needs the object,
  void LetRest(Object& object);    // or only calls that are kept, if they have to be run again.
  void WakeUp(Object& object);     // One of these is.

  // ---- Streams of others' actors: foreign_streams.cc.
  void TellItem(PeerIndex reader, TaskId call, std::uint64_t index, Object& item);
  void Take(ProcessIndex reader, TaskId call, std::uint64_t count);  // As of Streams.
  void CloseStreamsOf(ProcessIndex reader);

  // ---- Of values that this node brings for its own use.
  // Takes what was pulled; false if it is not wanted any longer.
  bool Arrived(Peer& owner, std::uint64_t pull, const ObjectValue& value);
  void Refused(Peer& owner, std::uint64_t pull, const TaskFailure& cause);  // There is no room.
  // Null if there is no such copy in memory or on the disk.
  Object* FindCopy(const Peer& owner, std::uint64_t kept) const;
  // Its owner does not count on it any longer. False if there is no such copy.
  static bool CopyIsNoSource(Peer& owner, std::uint64_t kept);

  // ---- Other nodes.
  void Receive(Peer& peer, const PeerMessage& message);
  void Meet(const Peer& peer);  // Again changes nothing.
  // Owners that were not met, and are not known to be over.
  std::vector<ForeignName> Strangers() const;
  void PeerDied(const Peer& dead);
  // False if it is no node that watches.
  bool Ready(const Watch& watch, Object& object) {
    return watch.request >= kFetches && Tell(watch, object);
  }

 private:
  // What a node's watch is for: no process uses these numbers.
  static constexpr std::uint64_t kFetches = ~std::uint64_t{1};
  static constexpr std::uint64_t kAsks = ~std::uint64_t{0};

  using Objects = std::unordered_set<Object*, ObjectHash>;
  // A call of another node whose references are not all registered yet.
  using ForeignCall = std::pair<PeerIndex, TaskId>;

  struct Record {
    PeerIndex owner = 0;      // 0: not met yet, or gone;
    Life life;                // it is or was this one,
    bool orphan = false;      // which is gone.
    std::uint32_t owed = 0;   // References that the owner counts for this node.
    std::uint32_t asked = 0;  // kReferred that are to come; the object is held meanwhile.
    bool wanted = false;      // The owner was asked what it is, and has not said,
    bool fetching = false;    // likewise for the value.
    bool rests = false;       // The owner keeps it for lineage alone.
    std::uint64_t copy = 0;   // What the owner calls the value that is here; 0: it knows of none.
    std::vector<Object*> brought_by;   // Kept, each held, until the owner knows,
    std::vector<ForeignCall> waiting;  // and calls that wait for that.
    // Whom to tell of which of this node's values then.
    std::vector<std::pair<PeerIndex, ObjectId>> untold;
  };
  // A call of another's actor. What it refers to is held until it is made.
  struct Call {
    TaskId task;
    Payload bytes;
    std::vector<Object*> references;
  };

  // A stream of another's actor, which a process of this node reads.
  struct Read {
    TaskId call;
    PeerIndex owner = 0;
    ProcessIndex reader = kDriver;
    std::uint32_t ahead = 0;
    std::uint64_t came = 0;          // Items; those that
    std::uint64_t taken = 0;         // were not taken are held.
    std::uint64_t told = 0;          // Of `taken`: what the owner knows.
    std::uint64_t closed = 0;        // By this word (kStreamDropped), which the owner is to hear.
    std::optional<PeerMessage> end;  // Came before the value of an item.
  };

  Record* Find(const Object& object);
  const Record* Find(const Object& object) const;
  void Tell(const Record& record, const PeerMessage& message);
  bool Tell(const Watch& watch, Object& object);

  // ---- The holder.
  Object& Learn(const Peer* from, const ForeignName& name);
  void MakeForeign(Object& object, const ForeignName& name);
  bool IsMetAgain(Object& object, Record& record);
  void Register(Object& object, Record& record);
  void Bereave(Object& object);
  void FailOrphan(Object& object);
  void Settle(Object& object, Record& record);
  void Fail(Object& object, FailureKind kind, const std::string& text);
  void Referred(const PeerMessage& message);
  void ValueCame(Peer& owner, const PeerMessage& message);
  Payload BytesFor(const TaskSpec& spec) const;
  void MakeResult(const Peer& owner, ProcessIndex process, const Worker* worker,
                  const TaskSpec& spec, std::uint32_t index);
  bool MayBeTold(std::span<Object* const> objects) const;
  void MakeCalls(PeerIndex owner);
  void MakeCall(PeerIndex owner, const Call& call);
  void LetGo(const ForeignCall& call);

  void OpenStream(PeerIndex owner, ProcessIndex reader, const SpecHeader& header);
  void ItemCame(const Peer& owner, const PeerMessage& message);
  void ReleaseItems(Read& read, std::uint64_t end);
  void TellTaken(const Read& read, std::uint64_t count);
  void CloseStream(Read& read, std::uint64_t count);
  void EndStream(TaskId call);
  void DropStreamsOf(PeerIndex owner);
  bool HoldEnd(const Peer& owner, const PeerMessage& message);
  bool AwaitsItems(const Read& read) const;
  void TellEnds(Peer& owner);

  // ---- The owner.
  std::vector<ForeignName> NamesFor(const Peer& peer, std::span<Object* const> objects);
  void AddHolder(Peer& peer, const PeerMessage& message);
  void DropHolder(Peer& peer, const PeerMessage& message);
  void Dismiss(const Peer& peer, Object* object);
  void TellWhenReady(Peer& peer, Object& object);
  void TellValue(Peer& peer, Object& object);
  void BringTo(Peer& peer, Object& object);
  void CallCame(Peer& peer, const PeerMessage& message);
  void CancelFor(Object& object, const PeerMessage& message);
  void Answered(const ForeignCall& call);

  NodeParts& node_;
  std::unordered_map<const Object*, Record> records_;
  std::map<PeerIndex, Objects> of_owner_;
  std::map<Life, Objects> of_stranger_;  // Whose owners were not met yet.
  std::set<Life> over_;
  std::map<PeerIndex, std::deque<Call>> calls_;  // To be made, in order.
  // Calls that were made of others' actors: what they refer to is held until those know.
  std::map<ForeignCall, std::vector<Object*>> made_;
  std::unordered_map<ObjectId, Read, IdHash> reads_;  // By their ends.
  std::size_t ends_held_ = 0;
  std::map<ForeignCall, std::uint32_t> unanswered_;  // Of others: registrations that are missing.
  std::map<PeerIndex, Objects> rest_;                // What others' kept calls would need again.
};

}  // namespace menger
