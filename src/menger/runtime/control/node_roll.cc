#include "menger/runtime/control/node_roll.h"

#include <algorithm>
#include <utility>

namespace menger {
namespace {

// Parts of a lease,
constexpr std::int64_t kReadPart = 3;
constexpr std::int64_t kPatiencePart = 5;
constexpr std::int64_t kPausePart = 50;      // After a failure, and between hints.
constexpr std::int64_t kOldPrimaryPart = 2;  // An old primary goes on for less.
// half leases after a fail-over,
constexpr std::int64_t kDoubtHalves = 3;
// and leases.
constexpr std::int64_t kBuriedLeases = 100;  // Long after its last write can have arrived.

}  // namespace

NodeRoll::NodeRoll(const NodeId& self, std::int64_t lease, int page_records)
    : self_(KeyOf(self)), lease_(lease), page_records_(page_records) {}

std::int64_t NodeRoll::wake_at() const {
  return asked_ != 0 ? sent_at_ + lease_ / kPatiencePart : next_at_;
}

void NodeRoll::ReadSoon(std::int64_t now) {
  next_at_ = std::min(next_at_, std::max(now, began_at_ + lease_ / kPausePart));
}

void NodeRoll::Seek(const NodeId& node, std::uint64_t epoch, std::int64_t now) {
  const std::string key = KeyOf(node);
  if (key == self_ || nodes_.contains(key)) return;
  NodeRecord sought{.id = node, .epoch = epoch};
  if (buried_.contains(key)) return changes_.push_back({NodeChange::Kind::kDied, sought});
  if (sought_.emplace(key, std::move(sought)).second) ReadSoon(now);
}

std::vector<NodeChange> NodeRoll::TakeChanges() { return std::exchange(changes_, {}); }

const NodeRecord* NodeRoll::FindAt(std::string_view address) const {
  const NodeRecord* youngest = nullptr;
  for (const auto& [key, node] : nodes_) {
    if (node.address != address) continue;
    if (youngest == nullptr || node.epoch > youngest->epoch) youngest = &node;
  }
  return youngest;
}

std::optional<StoreAsk> NodeRoll::Next(std::int64_t now) {
  const std::int64_t patience = lease_ / kPatiencePart;
  if (!deletes_.empty()) {
    last_number_ += 2;  // Whose answer nobody waits for: it will be read.
    return StoreAsk{
        .number = last_number_, .batch = std::exchange(deletes_, {}), .patience = patience};
  }
  if (asked_ != 0 && now - sent_at_ >= patience) {
    asked_ = 0;
    next_at_ = now;
    after_.clear();
  }
  if (asked_ != 0 || now < next_at_) return std::nullopt;
  if (after_.empty()) {
    records_.clear();
    began_at_ = now;
    next_at_ = now + lease_ / kReadPart;
  }
  last_number_ += 2;
  asked_ = last_number_;
  sent_at_ = now;
  return StoreAsk{.number = asked_, .after = after_, .limit = page_records_, .patience = patience};
}

void NodeRoll::Read(std::uint64_t number, StorePage page, std::int64_t now,
                    std::uint64_t own_epoch) {
  if (number != asked_) return;
  asked_ = 0;
  after_.clear();
  if (page.error) {
    next_at_ = now + lease_ / kPausePart;
    return;
  }
  // If it happens between two pages, they prove nothing.
  const std::uint64_t fail_overs = FailOversOf(page.newest);
  if (!heard_at_ || fail_overs > fail_overs_) {
    fail_overs_ = fail_overs;
    heard_at_ = now;
  }
  std::ranges::move(page.records, std::back_inserter(records_));
  if (page.next.empty()) return Finish(now, own_epoch);
  after_ = std::move(page.next);
  next_at_ = now;
}

// A record of a life that is there.
void NodeRoll::Compare(const StoreRecord& record) {
  if (buried_.contains(record.key)) return;
  StoreVersion& version = versions_[record.key];
  if (std::exchange(version, record.version) == record.version) return;
  std::optional<NodeRecord> node = DecodeNodeRecord(record.key, record.value);
  if (!node) return;
  const auto known = nodes_.find(record.key);
  if (known == nodes_.end()) {
    changes_.push_back({NodeChange::Kind::kMet, *node});
    nodes_.emplace(record.key, *std::move(node));
  } else if (known->second.state != node->state) {
    changes_.push_back({NodeChange::Kind::kChanged, *node});
    known->second = *std::move(node);
  }
}

// The whole table has been read.
void NodeRoll::Finish(std::int64_t now, std::uint64_t own_epoch) {
  std::erase_if(records_, [this](const StoreRecord& record) { return record.key == self_; });
  for (const StoreRecord& record : records_) {
    if (!record.expired) Compare(record);
  }
  std::erase_if(versions_, [this](const auto& known) { return !IsThere(known.first); });
  ForgetBuried(now);
  std::erase_if(missing_, [this](const auto& life) {
    return !nodes_.contains(life.first) && !sought_.contains(life.first) &&
           !std::ranges::binary_search(records_, life.first, {}, &StoreRecord::key);
  });
  const bool in_doubt = 2 * (began_at_ - *heard_at_) < kDoubtHalves * lease_;
  if (fail_overs_ > 0 && in_doubt) return missing_.clear();
  BuryMissing(now);
  const bool oldest =
      std::ranges::all_of(nodes_, [&](const auto& node) { return own_epoch < node.second.epoch; });
  for (const StoreRecord& record : records_) {
    if (!oldest || !record.expired || !IsOver(record.key)) continue;  // One is enough.
    deletes_.push_back(StoreOperation::DeleteIf(StoreTable::kNodes, record.key, record.version));
  }
}

bool NodeRoll::IsThere(std::string_view key) const {
  const auto at = std::ranges::lower_bound(records_, key, {}, &StoreRecord::key);
  return at != records_.end() && at->key == key && !at->expired;
}

bool NodeRoll::IsOver(std::string_view key) const {
  const auto found = missing_.find(key);
  return found != missing_.end() && began_at_ - found->second >= lease_ / kOldPrimaryPart;
}

void NodeRoll::BuryMissing(std::int64_t now) {
  std::erase_if(missing_, [this](const auto& life) { return IsThere(life.first); });
  for (const StoreRecord& record : records_) {
    if (record.expired) missing_.try_emplace(record.key, now);
  }
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    if (!IsThere(at->first)) missing_.try_emplace(at->first, now);
    if (!IsOver(at->first)) {
      ++at;
      continue;
    }
    changes_.push_back({NodeChange::Kind::kDied, std::move(at->second)});
    buried_.emplace(at->first, now);
    at = nodes_.erase(at);
  }
  std::erase_if(sought_, [&](const auto& life) {
    const auto& [key, node] = life;
    if (nodes_.contains(key)) return true;
    if (!IsThere(key)) missing_.try_emplace(key, now);
    if (!IsOver(key)) return false;
    changes_.push_back({NodeChange::Kind::kDied, node});
    buried_.emplace(key, now);
    return true;
  });
}

void NodeRoll::ForgetBuried(std::int64_t now) {
  std::erase_if(buried_,
                [&](const auto& life) { return now - life.second >= kBuriedLeases * lease_; });
}

}  // namespace menger
