#pragma once

#include <deque>
#include <optional>
#include <span>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/object_table.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Values: who waits for them, how they are made again when they are lost, and what waits until one
// is in memory again that was on the disk.
class Values : public ObjectTable::Listener {
 public:
  explicit Values(NodeParts& node) : node_(node) {}

  // ---- As NodeMachine's.
  void Put(ProcessIndex process, ObjectId id, ObjectValue value,
           std::span<const ObjectId> contained);
  bool WatchObject(const Watch& watch, Object& object, bool with_value);
  void Lose(Object& object);
  void Restored(Object& object, const SharedExtent& extent);
  // Of a place: there alone.
  void NoRoom(Object& object, const Payload& error, std::optional<PeerIndex> place = {});
  std::string LargestReaders() const;

  // What waits for it is told with the next SpreadNews. A value that comes a second time is freed.
  void Fill(Object& object, ObjectValue value, std::span<const ObjectId> contained);
  void Free(const ObjectValue& value);
  void TellWatches(Object& object);  // Those for whom its value has come.
  void SpreadNews();                 // Tells who waits for objects that are ready.
  // Whether the reader finds its value (or error) in the memory of the node that he lives on, or
  // is.
  bool IsThere(const Object& object, ProcessIndex reader) const;
  bool has_news() const { return !news_.empty(); }
  // `cause`: why it is lost, where that is known.
  void MakeAgain(Object& lost, const TaskFailure* cause = nullptr);

  // The call does not start before it is there; if it is an error, the call fails.
  void Await(Task& task, Object& object);
  void StopWaiting(Task& task);
  // The same for what is no object: it starts when that, too, came.
  void AwaitMore(Task& task);
  void Came(Task& task);
  // Those that a call waited for are made, wherever they are now; one may be lost again since.
  static bool ArgumentsAreMade(const Task& task);
  // Calls that could run may not any longer: an argument was lost. True if something has changed.
  bool ReconsiderFetching();

 private:
  void OnUnneeded(Object& object) override;
  void OnFreed(Object& object) override;
  void OnForgotten(Task& producer) override;
  void OnForeignForgotten(Object& object) override;
  void OnForeignUnneeded(Object& object) override;

  void TellWaiting(Object& object);
  void TellReady(const Watch& watch, Object& object);
  PeerIndex PlaceOf(ProcessIndex reader) const;  // 0: here.
  static PeerIndex PlaceOf(const Task& task);    // Where it fetches its arguments.
  void FailWaiting(Task& task, const Payload& error);
  void FailReady(Task& task, const Payload& error);
  void Revive(Task& task, std::vector<Object*>& gone);

  NodeParts& node_;
  std::deque<Object*> news_;  // Ready, but not told yet; each held.
  bool spreading_ = false;
  std::uint64_t last_wait_ = 0;
};

}  // namespace menger
