#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "menger/runtime/control/node_record.h"
#include "menger/runtime/control/store_ask.h"

namespace menger {

// A node's own place in a cluster, in one life: a lease at the control store, and bound to it the
// node's record and its name, if it has one. No I/O, no clock, one thread at a time: it says what
// the store is to be asked, and is told what that has answered, and what time it is by the node's
// own steady clock.
//
// Six times in a lease it looks: renews the lease and reads what it has written. Only if all is
// there has the node lived on, and it counts from before it asked, and a tenth less than the store,
// whose clock may go faster. When by its clock that is over, so is its life: at once, for ever, and
// whatever the store says later. So what a store that has lost nothing shows as expired is over by
// every clock.
//
// After a fail-over the store may have forgotten lease, record and name. Who finds that out while
// his own clock says that he lives takes another lease and writes both again, under the same id and
// epoch, which is that of his first lease; others have waited for it (NodeRoll). So one life may
// have several leases, and never two lives one.
//
// A name is taken when it is free, or its holder's lease is over. By a fail-over it may get two
// holders: each looks, the one of the lower epoch ends, the other writes it again.
//
// What has not been answered, or failed, may have been made, or may yet be: it looks again. A lease
// that its id has and that it does not know is its own, since nobody else draws its id.
class NodeLease {
 public:
  enum class State : std::uint8_t {
    kJoining,
    kMember,
    kLeaving,  // Does nothing any longer but to give back what it has at the store.
    kOver,
  };
  enum class End : std::uint8_t {
    kNone,
    kLeft,
    kLeaseOver,  // Its process must exit, as for the next one.
    kNameTaken,
  };

  // `self`: without an epoch. `lease`: nanoseconds.
  NodeLease(NodeRecord self, std::int64_t lease);

  // What is to be asked now; call until there is nothing. It ends the life if that is over.
  std::optional<StoreAsk> Next(std::int64_t now);
  void Answered(std::uint64_t number, const std::vector<StoreResult>& results, std::int64_t now);
  // Next has nothing new to say before.
  std::int64_t wake_at() const;

  void Drain(std::int64_t now);
  void Leave(std::int64_t now);

  const NodeRecord& self() const { return self_; }  // Its epoch is right once it is a member.
  LeaseEpoch lease() const { return lease_; }  // By which it is a member now; a life has several.
  State state() const { return state_; }
  End end() const { return end_; }
  // Another node that lives has its name; it joins if that one ends.
  bool awaits_name() const { return awaits_name_; }
  // Whether it may act as a member at that moment. Next need not have been called.
  bool Lives(std::int64_t now) const { return now < lives_until(); }
  std::int64_t lives_until() const {
    return state_ == State::kMember ? until_ : std::numeric_limits<std::int64_t>::min();
  }

 private:
  enum class Step : std::uint8_t { kAcquire, kLook, kWrite, kGiveUp };
  // One of its keys at the store, as it was read last.
  struct Seen {
    StoreVersion version = 0;
    bool right = false;  // It is there as it should be.
  };

  void EndIfOver(std::int64_t now);
  void EndAs(End end);
  void Later(Step step, std::int64_t at);
  std::vector<StoreOperation> BatchOf(Step step);
  void Acquired(const StoreResult& result, std::int64_t now);
  void Looked(const std::vector<StoreResult>& results, std::int64_t now);
  Seen Compare(const StoreRecord& record, const std::string& wanted) const;
  void WriteSelf();

  NodeRecord self_;
  const std::string key_;
  std::string record_text_;  // What is to be at the store of it,
  std::string name_text_;    // and for its name.
  const std::int64_t lease_nanoseconds_;
  State state_ = State::kJoining;
  End end_ = End::kNone;

  LeaseEpoch lease_ = 0;
  bool shown_ = false;  // Its record may be at the store: others may know it.
  bool awaits_name_ = false;
  std::int64_t until_ = 0;  // If shown: it lives until then.
  Seen record_;
  Seen name_;

  Step step_ = Step::kAcquire;                                       // Under way, or next,
  std::int64_t next_at_ = std::numeric_limits<std::int64_t>::min();  // at this time.
  std::uint64_t asked_ = 0;                                          // Under way; 0: none is.
  std::uint64_t last_number_ = 1;                                    // Odd ones; see Membership.
  std::int64_t sent_at_ = 0;
};

}  // namespace menger
