#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/control/node_record.h"
#include "menger/runtime/driver/borrowed_worker.h"
#include "menger/runtime/driver/letter_box.h"
#include "menger/runtime/driver/line_printer.h"
#include "menger/runtime/driver/shown_values.h"
#include "menger/runtime/driver/spiller.h"
#include "menger/runtime/memory/value_store.h"
#include "menger/runtime/net/handshake.h"
#include "menger/runtime/node/node_machine.h"
#include "menger/runtime/node/peer_link.h"

namespace menger {

class ProcessWorker;

// Other nodes, as a node of processes sees them: what its machine tells them goes into letters over
// links, what they say is told to the machine; its lent workers and those that it has borrowed; and
// values that are brought from node to node. How packets travel is another's affair.
//
// All is called under the node's lock.
class Neighbours final : private LetterBox {
 public:
  using Link = PeerLink<SharedLetter>;
  // To or from another node.
  struct Flying {
    NodeLife node;
    PeerLane lane = PeerLane::kControl;
    Link::Packet packet;
  };
  struct Hooks {
    // Of this node's workers: the process of one, or null.
    std::function<ProcessWorker*(WorkerIndex)> find_process;
    // Workers of another node have printed that.
    std::function<void(std::vector<DistantLine> lines)> on_lines;
    // That one would know what its guests have printed until now: see SendLines.
    std::function<void(PeerIndex peer)> on_lines_wanted;
    // Room for a value that is to come, as Spiller::Request has it.
    std::function<void(std::uint32_t segment, std::uint64_t bytes, Spiller::Taken taken)> ask_room;
    // A value that is on the disk is to come back into memory, as Spiller::Restore has it.
    std::function<void(Object& object)> restore;
  };

  Neighbours(NodeLife own, NodeMachine& machine, ValueStore& store, Hooks hooks)
      : own_(own),
        machine_(machine),
        store_(store),
        hooks_(std::move(hooks)),
        segment_(store.AddSegment()),
        shown_(machine, store, segment_,
               {.send = [this](PeerIndex to, NodeLetter letter) { Send(to, std::move(letter)); },
                .ask_room = hooks_.ask_room}) {}

  const NodeLife& own() const { return own_; }

  // ---- Who is there.
  // Null if it was met before. Nodes `beside` each other live on one machine, as far as their
  // addresses tell.
  Peer* Meet(const NodeRecord& node, bool beside);
  // It is gone, or was before it was met.
  void HearOfEnd(const NodeLife& node, const std::string& why);
  // Null for one that is not there.
  Peer* FindPeer(const NodeLife& node) { return machine_.FindPeer(PeerOf(node)); }
  // This one's life is over: the others shall know.
  void SayFarewell();
  // Whether they are known to have all that they were told.
  bool KnowAll() const;

  // ---- What travels. A packet that is none of a neighbour's is ignored. Throws DataLoss for a
  // letter that nobody may write, and Unavailable for a farewell: it is to be told as HearOfEnd.
  void Arrive(Flying flying);
  // What was under way to it may be lost: it goes once more.
  void SendAgain(const NodeLife& node, PeerLane lane);
  std::vector<Flying> TakeOutgoing(std::int64_t now);

  // ---- As NodeEffects.
  void Tell(const Peer& peer, const PeerMessage& message);
  void Pull(const PullOrder& order);
  void Lent(Worker& worker);
  std::vector<LeaseNumber> BegunBy(const Worker& worker);

  // ---- What workers print.
  // Guests of that node did; `last`: what it has asked for is told with these.
  void SendLines(PeerIndex to, std::vector<PrintedLine> lines, bool last);
  // Whoever has lent workers shall tell what they have printed until now.
  void AskForLines();
  bool AwaitsLines() const;  // Some have not.
  // What this node has done for others, and brought or was shown of their values.
  struct Traffic {
    std::uint64_t calls = 0;
    std::uint64_t pulled_bytes = 0;
    std::uint64_t served_bytes = 0;
    std::uint64_t shown_bytes = 0;
  };
  const Traffic& traffic() const { return traffic_; }

  // What could not be done from within the machine. True if it was told something.
  bool Work(std::int64_t now);
  // Values that are being sent or shown stay where they lie. Those that were need not any longer.
  void ForgetSent();
  // Soon: values are sent, shown, or on their way into what they were given.
  bool frees_room() const;
  void ShowLess(std::uint64_t bytes) { shown_.ShowLess(bytes); }
  // Whether others see what this node has freed: they keep its memory.
  bool KeepFreed(const SharedExtent& extent) { return shown_.KeepFreed(extent); }

 private:
  struct Neighbour {
    NodeLife life;
    PeerIndex peer = 0;
    Link control;
    Link bulk;
    std::map<LoanNumber, std::unique_ptr<BorrowedWorker>> borrowed;
    bool has_lent = false;
    bool owes_lines = false;  // AskForLines.
    bool shows = false;       // What lies there may be seen from here.
  };
  // A value on its way here: whose, and as which pull of its owner. It is asked for once there is
  // room for it.
  struct Coming {
    NodeLife owner;
    std::uint64_t pull = 0;
    PeerIndex source = 0;  // 0: this node, where it is to be copied.
    std::uint64_t name = 0;
    std::uint64_t bytes = 0;
    std::optional<SharedExtent> extent;
    std::uint64_t filled = 0;
    std::int64_t restored_at = 0;  // At its source, this node: the last time that was asked for.
  };
  // Of a node, for a value that is on the disk.
  struct Wish {
    PeerIndex to = 0;
    NodeLetter letter;
    std::int64_t restored_at = 0;
  };
  using ComingPlace = std::vector<Coming>::iterator;

  void Send(PeerIndex to, NodeLetter letter) override;
  void SendBulk(PeerIndex to, NodeLetter letter);
  Neighbour* Find(PeerIndex peer);
  Neighbour* Find(const NodeLife& life);
  PeerIndex PeerOf(const NodeLife& life);  // 0: this node, or none that is there.

  void Take(Neighbour& from, NodeLetter& letter);
  void TakeMessage(Neighbour& from, const PeerMessage& message);
  void TakeForWorker(Neighbour& from, NodeLetter& letter);
  void TakeFromWorker(Neighbour& from, const NodeLetter& letter);
  void DropValuesOf(Neighbour& from, std::span<const std::byte> message);
  void ForgetReturned(Neighbour& from);
  void TakeLines(Neighbour& from, NodeLetter& letter);

  Object* FindValue(const NodeLife& owner, std::uint64_t pull, std::uint64_t name);
  bool IsInMemory(Object& object, std::int64_t& restored_at);
  void SendValue(Neighbour& to, NodeLetter letter, std::int64_t restored_at);
  void TakeShown(Neighbour& from, const NodeLetter& letter);
  std::shared_ptr<const void> Keep(Object& object);
  void TakePart(const NodeLetter& letter);
  ComingPlace FindComing(const NodeLife& owner, std::uint64_t pull);
  void AskRoom(Coming& coming);
  void AskFor(const Coming& coming, std::uint32_t process);
  void HasRoom(const NodeLife& owner, std::uint64_t pull, const SharedExtent* extent,
               const TaskFailure* refusal);
  void Begin(const Coming& coming);
  void EndComing(const Coming& coming, bool arrived);
  bool CopyHere(Coming& coming);

  const NodeLife own_;
  NodeMachine& machine_;
  ValueStore& store_;
  const Hooks hooks_;
  const std::uint32_t segment_;  // Where values come to.
  ShownValues shown_;
  std::map<PeerIndex, Neighbour> neighbours_;
  std::vector<Coming> coming_;
  // Values that are sent: pinned, one a wish. Links and streams share each for as long as they have
  // a part of it; nothing is read through it but how many they are.
  std::vector<std::shared_ptr<Object*>> going_;
  Traffic traffic_;
  std::vector<Wish> wishes_;
  std::int64_t now_ = 0;
  std::vector<Coming> here_already_;  // Of coming_, to be copied by Work.
};

}  // namespace menger
