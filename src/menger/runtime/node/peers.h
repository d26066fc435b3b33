#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/node/node_records.h"
#include "menger/runtime/node/peer_message.h"
#include "menger/runtime/values/task_error.h"

namespace menger {

// Other nodes.
//
// A node whose calls would wait for too long asks the others for workers. Who has one that does
// nothing lends it: for the borrower it is a worker like its own, only further away, and all that
// it does is the borrower's: calls that its calls make, what they put, what they refer to. So every
// call, object and actor has one owner, the node whose driver made it, by however many calls in
// between; the death of any other node costs what a worker's death costs, and the larger values
// that lay there. Of the lender a lent worker occupies the resources, and nothing else.
//
// An actor that has no room at home lives in a borrowed worker, which stays with it to the end of
// either; its mailbox, its log and its checkpoints are its owner's.
//
// Of what several want each has its share (peers_lending.cc).
class Peers {
 public:
  explicit Peers(NodeParts& node) : node_(node) {}

  // ---- As NodeMachine's.
  Peer& Add(NodeId node, std::uint64_t epoch, Resources total, std::uint64_t reading_bytes_max);
  Peer* Find(PeerIndex index);
  const Peer* OfProcess(ProcessIndex process) const;  // Null if it is none's.
  Peer* OfProcess(ProcessIndex process);
  Peer* FindLife(NodeId node, std::uint64_t epoch);
  void Died(Peer& peer, const TaskFailure& cause);
  void Receive(Peer& peer, const PeerMessage& message);
  void CutOff(std::string_view why) { cut_off_ = why; }
  void LendsNothing(Peer& peer);
  static Worker* FindBorrowed(const Peer& peer, LoanNumber loan);
  std::uint64_t KeepFor(const Peer& peer, ObjectValue value);
  void Pulled(Peer* owner, std::uint64_t pull, ObjectValue value);
  void NotPulled(Peer* owner, std::uint64_t pull);
  void PullRefused(Peer* owner, std::uint64_t pull, const TaskFailure& cause);
  Object* FindKept(const Peer& peer, std::uint64_t kept) const;

  const std::map<PeerIndex, std::unique_ptr<Peer>>& all() const { return peers_; }
  void TellScheduler();                 // What others have.
  void GiveBackOf(const Group& group);  // Workers that were borrowed for its calls.
  void Serve();                         // Asks for workers, lends, and gives back.
  void Tell(PeerIndex to, const PeerMessage& message);
  void DropAt(PeerIndex node, std::uint64_t name);  // It lies there, and nobody needs it.
  // One that this node has given back, and that will not be lent to it again.
  void EndResting(Worker& worker, std::string_view why);
  // A loan is over because its worker is.
  void EndLoan(Worker& worker, const TaskFailure& cause);
  bool HasBorrowed() const;  // Workers that are to be given back once there is no use for them.
  // What waits for what it prefers, and no node has any longer, goes where it can.
  void SendElsewhere();
  // When Serve has to look again, since somebody may have more than his share, more are to be
  // asked, or fewer share this node's memory; none: need not.
  std::optional<std::int64_t> NextShare() const;
  std::optional<std::int64_t> next_ask() const { return next_ask_; }
  std::optional<std::int64_t> next_sharers() const { return next_sharers_; }
  // A borrowed worker that has nothing to do, for an actor, whose end is its own; null if there is
  // none.
  Worker* Dedicate(SchedulingClass& need);

 private:
  void ReceiveOfLent(Worker& worker, const PeerMessage& message);
  void Drop(Peer& peer, std::uint64_t kept);
  SchedulingClass* FindClass(const std::string& name);  // Null if calls of it cannot be any longer.
  void Borrow(Peer& peer, const PeerMessage& message);
  void Cannot(Peer& peer, const std::string& why);  // "": it can.
  void IsFull(const Peer& peer, const PeerMessage& message);
  void FailForeign(SchedulingClass& scheduling);
  void FailForeignActors();
  void CountHomeless();
  // peers_asking.cc
  std::size_t WaitingElsewhere(const SchedulingClass& scheduling) const;
  void AskForWorkers();
  void Ask(SchedulingClass& scheduling, std::size_t waiting);
  void AskOthers(const SchedulingClass& scheduling, std::size_t waiting, std::int64_t since,
                 std::vector<Peer*> others);
  std::size_t WantedFrom(const Peer& peer, const SchedulingClass& scheduling, std::size_t waiting);
  void SortForAsking(const SchedulingClass& scheduling, std::vector<Peer*>& peers) const;
  void AskFor(Peer& peer, const SchedulingClass& scheduling, std::size_t waiting);
  void StopAsking(Peer& peer, SchedulingClass& scheduling);
  void TellWanted(const Peer& peer, const SchedulingClass& scheduling, std::uint32_t count);
  bool IsMissing(SchedulingClass& scheduling);
  bool IsHopeless(SchedulingClass& scheduling);
  std::int64_t PatienceFor(const SchedulingClass& scheduling) const;
  const Peer* FindWith(std::string_view resource) const;  // Null if no node has it.
  std::string WhyNobody(const SchedulingClass& scheduling) const;
  std::string WhyNot(const std::string& only, const SchedulingClass& scheduling) const;
  static bool MayServe(const Peer& peer, const SchedulingClass& scheduling);
  bool IsWaitedFor(const SchedulingClass& scheduling) const;
  bool IsInTheWay(const Peer& peer, const Worker& worker) const;
  void GiveBackIdle(Peer& peer);
  void GiveBack(Worker& worker);
  void Keep(const Peer& peer, std::uint64_t name, ObjectValue value);
  void PullFor(Peer& owner, const PeerMessage& message);
  void LendToAll();
  bool LendTo(Peer& peer);
  void Lent(Peer& peer, Worker& worker, const std::string& scheduling);
  Worker* LendOne(Peer& peer, const std::string& scheduling, std::uint32_t count);
  SchedulingClass* FindWanted(const Peer& peer, const std::string& scheduling);
  void SayFull(Peer& peer, const std::string& scheduling);
  void ShareWith(Peer& poor);
  void TellSharers();
  bool IsOwed(const Resources& need) const;
  std::size_t Coming() const;  // Workers that were asked back.
  const Peer* Richest(const Peer& poor) const;
  bool CanComeBack(const Resources& need) const;
  Worker* ToShare(const Peer& rich, const Peer& poor, const Resources& need) const;
  void AskBack(Worker& worker);
  void AskBackForOwn();
  void TakeIn(Worker& worker, bool clean);

  static constexpr std::uint32_t kWantedMax = 64;  // Workers of one class, of one peer at once.

  NodeParts& node_;
  std::map<const SchedulingClass*, std::size_t> homeless_;  // Actors that would live elsewhere.
  // Classes for which workers are asked for, since when.
  std::map<const SchedulingClass*, std::int64_t> asking_;
  std::uint64_t askings_ = 0;  // So many began.
  std::optional<std::int64_t> next_ask_;
  std::optional<std::int64_t> next_sharers_;
  std::map<PeerIndex, std::unique_ptr<Peer>> peers_;
  PeerIndex last_peer_ = 0;
  std::string cut_off_;  // Why no further node will come; "": some may.
  LoanNumber last_loan_ = 0;
  std::uint64_t last_kept_ = 0;
  std::vector<const Resources*> owed_;  // To those who have fewer, in this Serve.
};

}  // namespace menger
