#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/control/node_record.h"
#include "menger/runtime/control/store_ask.h"

namespace menger {

// What a node has learned of another.
struct NodeChange {
  enum class Kind : std::uint8_t {
    kMet,      // It is there, or was a moment ago.
    kChanged,  // It is draining.
    kDied,     // It is over by its own clock, too, and will never be there again.
  };
  Kind kind = Kind::kMet;
  NodeRecord node;
};

// Who else is there, as a node reads it in StoreTable::kNodes: now and then, and soon where there
// is a hint or a suspicion, which say nothing by themselves. No I/O, no clock, one thread at a
// time.
//
// A life that was there, and whose record is gone or expired, is over, if the store has lost
// nothing: NodeLease counts more strictly than the store. But a store that has failed over may have
// lost it although it lives, and an old primary does not hear of those who renew elsewhere. So two
// readings have to find it missing. Both began one lease and a half after this node first heard of
// the store's last fail-over: half a lease in which an old primary may have renewed, and one that
// it may have given last; whoever lives has written himself again. And between them lies half a
// lease, after which the second is not an old primary's. A store that has not failed over by the
// second has lost nothing.
class NodeRoll {
 public:
  // `self` is not listed. `lease`: nanoseconds. `page_records`: that are read at a time.
  NodeRoll(const NodeId& self, std::int64_t lease, int page_records);

  // What is to be asked now; call until there is nothing.
  std::optional<StoreAsk> Next(std::int64_t now);
  // `own_epoch`: the oldest node deletes what the dead have left.
  void Read(std::uint64_t number, StorePage page, std::int64_t now, std::uint64_t own_epoch);
  std::int64_t wake_at() const;  // Next has nothing to say before.

  // There was a hint, or a stream has broken.
  void ReadSoon(std::int64_t now);
  // Somebody has spoken of that life, which may have been over before this node came: if it is not
  // there, that is told as of one that was.
  void Seek(const NodeId& node, std::uint64_t epoch, std::int64_t now);

  // Lives that are there, by their keys.
  const std::map<std::string, NodeRecord, std::less<>>& nodes() const { return nodes_; }
  // Who may be found at an address: of several the youngest. Null: nobody.
  const NodeRecord* FindAt(std::string_view address) const;
  std::vector<NodeChange> TakeChanges();

 private:
  void Compare(const StoreRecord& record);
  void Finish(std::int64_t now, std::uint64_t own_epoch);
  void BuryMissing(std::int64_t now);
  bool IsThere(std::string_view key) const;  // As the reading found it.
  bool IsOver(std::string_view key) const;
  void ForgetBuried(std::int64_t now);

  const std::string self_;  // Its key.
  const std::int64_t lease_;
  const int page_records_;

  std::map<std::string, NodeRecord, std::less<>> nodes_;
  std::map<std::string, StoreVersion, std::less<>> versions_;  // That were read of these.
  std::map<std::string, std::int64_t, std::less<>> missing_;   // Gone or expired, found first at.
  std::map<std::string, std::int64_t, std::less<>> buried_;    // Lives that are over, since when.
  std::map<std::string, NodeRecord, std::less<>> sought_;      // That were not there so far.
  std::vector<NodeChange> changes_;

  std::uint64_t fail_overs_ = 0;          // Of the store, as far as known,
  std::optional<std::int64_t> heard_at_;  // since then.

  // The reading that is under way, or the next.
  std::vector<StoreRecord> records_;
  std::string after_;
  std::int64_t began_at_ = 0;
  std::int64_t sent_at_ = 0;
  std::uint64_t asked_ = 0;        // 0: none is under way.
  std::uint64_t last_number_ = 0;  // Even ones; see Membership.
  std::int64_t next_at_ = std::numeric_limits<std::int64_t>::min();
  std::vector<StoreOperation> deletes_;
};

}  // namespace menger
