#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "menger/runtime/control/node_lease.h"
#include "menger/runtime/control/node_roll.h"

namespace menger {

struct MembershipOptions {
  std::chrono::nanoseconds lease = std::chrono::seconds(10);
  int page_records = 1000;  // That are read of the store at a time.
};

// A node among others: that it is there (NodeLease), and who else is (NodeRoll). No I/O, no clock,
// one thread at a time: whoever drives it asks the control store what Next says, tells it what
// completes, and calls Next again at wake_at. Once it is over it says nothing any longer.
class Membership {
 public:
  Membership(const NodeRecord& self, const MembershipOptions& options)
      : own_(self, options.lease.count()),
        others_(self.id, options.lease.count(), options.page_records) {}

  std::vector<StoreAsk> Next(std::int64_t now) {
    std::vector<StoreAsk> asks;
    while (std::optional<StoreAsk> ask = own_.Next(now)) asks.push_back(*std::move(ask));
    if (own_.state() != NodeLease::State::kMember) return asks;
    while (std::optional<StoreAsk> ask = others_.Next(now)) asks.push_back(*std::move(ask));
    return asks;
  }
  void Answered(std::uint64_t number, const std::vector<StoreResult>& results, std::int64_t now) {
    own_.Answered(number, results, now);  // Its numbers are odd, the others' even.
  }
  void Read(std::uint64_t number, StorePage page, std::int64_t now) {
    if (own_.Lives(now)) others_.Read(number, std::move(page), now, own_.self().epoch);
  }
  std::int64_t wake_at() const {
    const std::int64_t own = own_.wake_at();
    const bool member = own_.state() == NodeLease::State::kMember;
    return member ? std::min(own, others_.wake_at()) : own;
  }

  // A watch of StoreTable::kNodes has given a hint, or a node does not answer any longer: it may be
  // dead, or slow, or the way to it broken.
  void Hint(std::int64_t now) { others_.ReadSoon(now); }
  void Seek(const NodeId& node, std::uint64_t epoch, std::int64_t now) {
    others_.Seek(node, epoch, now);
  }
  // It lends nothing more.
  void Drain(std::int64_t now) { own_.Drain(now); }
  // It stops being a member at once, and gives back what it has at the store.
  void Leave(std::int64_t now) { own_.Leave(now); }

  const NodeLease& own() const { return own_; }
  const NodeRoll& others() const { return others_; }
  std::vector<NodeChange> TakeChanges() { return others_.TakeChanges(); }

 private:
  NodeLease own_;
  NodeRoll others_;
};

}  // namespace menger
