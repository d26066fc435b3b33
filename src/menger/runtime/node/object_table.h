#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/values/id_map.h"

namespace menger {

// The node's objects, and who needs each: an object is freed when no process refers to it and
// nothing holds it, and forgotten when no kept call would need it again either.
//
// Part of the node's state machine: no I/O, no lock, no clock. What the outside has to do about a
// freed object, the listener is told.
class ObjectTable {
 public:
  class Listener {
   public:
    // Nobody needs the object any longer; it is remembered, at most.
    virtual void OnUnneeded(Object& object) = 0;
    // The value is not there any longer: its extent or its place on the disk may be used again.
    virtual void OnFreed(Object& object) = 0;
    // The object is forgotten: the call that made it is kept for one result less.
    virtual void OnForgotten(Task& producer) = 0;
    // Of one that another node owns: so is it; or only kept calls would need it again.
    virtual void OnForeignForgotten(Object& object) = 0;
    virtual void OnForeignUnneeded(Object& object) = 0;

   protected:
    ~Listener() = default;
  };

  ObjectTable(Listener& listener, States& states) : listener_(&listener), states_(&states) {}

  Object* Find(ObjectId id) const { return by_id_.Find(id); }
  Object& FindOrMake(ObjectId id);
  std::size_t size() const { return by_id_.size(); }
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    by_id_.ForEach(visit);
  }

  // What a process refers to; counted. Dropping what it does not refer to changes nothing.
  void AddReferrer(ProcessIndex process, Object& object);
  void DropReferrer(ProcessIndex process, Object& object);

  // What a process reads in shared memory; counted.
  void Pin(ProcessIndex process, Object& object);
  void Unpin(ProcessIndex process, Object& object);
  // What a call reads that a worker has, or is about to get; counted. The call holds the object.
  void BeginRead(Object& object) { SetPins(object, object.pins + 1); }
  void EndRead(Object& object) { SetPins(object, object.pins - 1); }

  // Of the values in this node's shared memory that nobody reads the one that nobody has for
  // longest; or null.
  Object* LeastRecentlyRead() const { return unread_.front(); }
  // Those that are read, by whom: processes other than the driver with the pins that each has.
  struct Read {
    const Object* object = nullptr;
    std::vector<std::pair<ProcessIndex, std::uint32_t>> pins;
  };
  std::vector<Read> LargestRead(std::size_t count) const;

  // The value lies elsewhere from now on: in memory or on the disk. Gives what it was.
  ObjectValue Move(Object& object, ObjectValue value);

  // Who wants to know when the object is ready; it is held until then.
  void AddWatch(const Watch& watch, Object& object);
  void DropWatch(const Watch& watch, Object& object);
  // All of them: they are over. The caller holds the object.
  std::vector<Watch> TakeWatches(Object& object);

  // The process is gone, with all its references, pins and watches.
  void DropProcess(ProcessIndex process);
  bool IsReferredBy(ProcessIndex process, Object& object) const {
    const auto uses = uses_.find(process);
    if (uses == uses_.end()) return false;
    const auto use = uses->second.find(&object);
    return use != uses->second.end() && use->second.references > 0;
  }
  bool IsUsedBy(ProcessIndex process) const {
    const auto uses = uses_.find(process);
    return uses != uses_.end() && !uses->second.empty();
  }

  void Hold(Object& object) { ++object.holds; }
  void Release(Object& object);
  void HoldLineage(Object& object) { ++object.lineage; }
  void ReleaseLineage(Object& object);

  // Gives a pending object its value; `contained` are held until it is freed. False if it has one
  // already (a second run): the value is then not needed.
  bool Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained);

  // The value is gone, or was freed: the object is pending again.
  void Lose(Object& object);

 private:
  struct Use {
    std::uint32_t references = 0;
    std::uint32_t pins = 0;
    std::uint32_t watches = 0;
    bool operator==(const Use&) const = default;
  };
  using Uses = std::unordered_map<Object*, Use, ObjectHash>;

  // One use less; false if the process has none. The driver's are not counted apart.
  bool Drop(ProcessIndex process, Object& object, std::uint32_t Use::*uses);
  void Settle(Object& object);  // Frees and forgets what nobody needs, and what that had kept.
  void Queue(Object& object);
  void DropValue(Object& object);
  void SetPins(Object& object, std::uint32_t pins);
  static bool IsListed(const Object& object);
  void List(Object& object);
  void Unlist(Object& object);

  Listener* listener_;
  States* states_;
  Pool<Object> pool_;
  IdMap<Object> by_id_;
  std::unordered_map<ProcessIndex, Uses> uses_;  // Of workers; the driver's are in the objects.
  IntrusiveList<Object> unread_;    // Values in this node's shared memory that nobody reads, the
                                    // last one read at the end,
  IntrusiveList<Object> read_;      // and those that are.
  std::vector<Object*> unsettled_;  // Of the Settle that is running.
  bool settling_ = false;
};

}  // namespace menger
