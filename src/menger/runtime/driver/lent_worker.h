#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "menger/runtime/channel/worker_messages.h"
#include "menger/runtime/driver/letter_box.h"
#include "menger/runtime/node/node_machine.h"

namespace menger {

class ProcessWorker;

// A worker process of this node while another node has it: what the owner of its calls tells it
// goes into its ring, and what it says to him into letters. Its larger values stay here, kept for
// the owner under a name (NodeMachine::KeepFor), and those that he tells it of by such names are
// shown to it where they lie.
//
// Of what the owner tells nothing is believed unchecked: DataLoss means that the loan must end.
class LentWorker {
 public:
  LentWorker(ProcessWorker& process, NodeMachine& machine, const Worker& worker, LetterBox& box)
      : process_(process),
        machine_(machine),
        owner_(worker.borrower),
        loan_(worker.loan),
        box_(box) {}

  // ---- From the owner.
  void Tell(std::vector<std::byte> message);
  void Recall(LeaseNumber lease);
  void Interrupt(LeaseNumber lease);

  // ---- From the worker: a whole message that is not about this machine alone.
  void Say(ToNode kind, std::span<const std::byte> message);
  // A value that the owner has told it of is in memory again; or there is no room for it.
  void Ready(std::uint64_t request, Object& kept);
  void Refuse(std::uint64_t request, const Payload& error);
  // The way to it is full of calls that it has not begun.
  void GiveBackCalls();
  // What it has begun and not ended: asked once, at its end.
  std::vector<LeaseNumber> Begun();

 private:
  // One whose arguments are not all in memory yet, or one behind it.
  struct WaitingCall {
    LeaseNumber lease = 0;
    std::vector<std::byte> message;
    std::vector<ValueHeader> arguments;  // By reference.
    std::int64_t since = 0;              // Nanoseconds; 0: it is not known to wait.
  };
  void TellCall(std::vector<std::byte> message);
  void PassCalls();
  void PassFirst();
  bool AwaitArguments(const WaitingCall& call);
  Object* FindKept(const ValueHeader& header);
  void TellValue(std::vector<std::byte> message);
  void Show(const ValueMessage& head, Object& kept);
  // Where it is mapped by the worker and stays; none if it is not in memory.
  ValueHeader Lay(Object& kept);
  void EndLease(LeaseNumber lease);
  void SayEnded(ToNode kind, std::span<const std::byte> message);
  // Of a message with one value behind its head.
  template <typename Head>
  void SayValue(std::span<const std::byte> message);
  void WriteResultFor(MessageReader& reader, std::vector<std::byte>& out);
  void SayUnpinned(ObjectId object);
  void SendOn(std::vector<std::byte> message);

  ProcessWorker& process_;
  NodeMachine& machine_;
  const PeerIndex owner_;
  const LoanNumber loan_;
  LetterBox& box_;
  std::deque<WaitingCall> calls_;
  // Calls that it has, or that wait for room in its ring, or are in `calls_`; and what they read,
  // pinned.
  std::map<LeaseNumber, std::vector<ObjectId>> leases_;
  std::multimap<ObjectId, ObjectId> shown_;          // By the owner's names, pinned; here.
  std::map<std::uint64_t, ValueMessage> restoring_;  // By request: not in memory yet.
};

}  // namespace menger
