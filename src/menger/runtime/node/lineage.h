#pragma once

#include <cstddef>
#include <span>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/object_table.h"

namespace menger {

// Its result stands for what there is once: an actor, or a placement group.
bool IsUnique(const Task& task);

// Calls that are done and kept, since their results may be lost and have to be made again; the
// oldest first. A kept call holds nothing but what it could not have again.
//
// Part of the node's state machine: no I/O, no lock, no clock.
class Lineage {
 public:
  Lineage(ObjectTable& objects, Pool<Task>& tasks) : objects_(&objects), tasks_(&tasks) {}

  // Whether some of its results, which are there, could be lost while it could make them again.
  static bool MayBeNeeded(const Task& task);
  void Keep(Task& task, std::span<Object* const> results);  // Those of the call.
  // It is to be run again: it holds its arguments as it did when it was made.
  void TakeOut(Task& task);
  // What is lost of its results from now on is lost for good. Its record is returned.
  void Drop(Task& task);
  void Bound(std::size_t bytes_max);  // Drops the oldest.

  std::size_t calls() const { return kept_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  ObjectTable* objects_;
  Pool<Task>* tasks_;
  IntrusiveList<Task> kept_;
  std::size_t bytes_ = 0;  // Of these.
};

}  // namespace menger
