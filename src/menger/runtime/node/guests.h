#pragma once

#include "menger/runtime/node/node_records.h"

namespace menger {

// Workers whose program is another node's: what a node lends where its own workers could not do the
// borrower's calls. They are started when he asks for workers, do his calls and nobody else's, and
// end with him; between two loans they wait here, as many of all programs as the node has CPUs.
//
// They take no part in how the scheduler deals with the node's own workers: each is dedicated, and
// occupies resources while it is lent.
class Guests {
 public:
  explicit Guests(NodeParts& node) : node_(node) {}

  // ---- As NodeMachine's.
  void SetProgram(Peer& peer, ProgramIndex program);
  void CannotServe(Peer& peer, std::string_view why);
  Worker* Add(WorkerIndex index, ProgramIndex program);
  void StartFailed(ProgramIndex program, std::string_view cause);

  // Occupies what the class needs; null if no guest can be had now. Then as many are started as
  // would find room, `count` at the most.
  Worker* Lend(Peer& peer, SchedulingClass& need, std::uint32_t count);
  // Whether so many wait that could do calls of the class, if there were room; else they are
  // started. Of a node whose calls this one's workers do: always.
  bool AreReadyFor(Peer& peer, const SchedulingClass& need, std::size_t count);
  // Back from a loan: to be lent to the same borrower again; Rest: as the same loan.
  void TakeIn(Worker& worker);
  void Rest(Worker& worker);
  void Forget(const Worker& worker);  // It is gone.
  void PeerDied(Peer& peer);
  void EndSpare();

 private:
  Peer* OfProgram(ProgramIndex program);
  void End(Worker& worker, std::string_view why);
  Worker* IdleForLongest() const;
  std::uint32_t FindRoom(const SchedulingClass& need, std::uint32_t count);

  NodeParts& node_;
};

}  // namespace menger
