#include "menger/runtime/simulation/membership_world.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

constexpr std::int64_t kLease = 10'000'000'000;
constexpr std::int64_t kStep =
    kLease / 500;  // What happens within one happens in order, at its end.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr double kDrift = 0.01;                           // Clocks are faster or slower by so much.
constexpr std::int64_t kOldPrimaryMax = kLease / 20 * 9;  // It goes on for so long, at the most.
// What a life has at the store may be lost to it for so long after a fail-over, and a name have two
// holders: while one looks at an old primary, for what that gave last, and for what the other was
// given just before the first wrote itself again.
constexpr std::int64_t kForgottenMax = kOldPrimaryMax + 2 * kLease;
constexpr int kPageRecords = 3;  // So that there are several pages.

}  // namespace

// One start of a node.
struct MembershipWorld::Life {
  std::unique_ptr<SimulatedMember> member;
  int host = 0;
  std::string key;  // Of its record.
  std::int64_t cut_until = 0;
  std::int64_t troubled_at = -kNever / 2;  // When it could not go on last.
  std::int64_t leave_at = kNever;
  bool joined = false;
  bool over = false;
  std::set<NodeId> met;
  std::set<NodeId> dead;
};

MembershipWorld::MembershipWorld(std::uint64_t seed)
    : random_(Random::FromSeed(seed)),
      store_(random_, kLease / 5, random_.Uniform(1 - kClockDrift, 1 + kClockDrift)),
      calm_(Draw(3) == 0),
      suspicious_(Draw(8) == 0),
      hosts_(2 + Draw(3)),
      names_(Draw(3)),
      fail_overs_(4 * Draw(4)),
      fail_over_at_(-10 * kLease),
      fails_over_at_(kNever) {
  StoreFaults faults;
  faults.delay = DrawTime(calm_ ? kLease / 40 : kLease / 4);
  faults.lag = DrawTime(calm_ ? kLease / 2 : 4 * kLease);
  if (!calm_) faults.lost_percent = Draw(3) * 5;
  if (!calm_) faults.mute_percent = Draw(2) * 5;
  store_.set_faults(faults);
}

MembershipWorld::~MembershipWorld() = default;

MembershipWorld::Life* MembershipWorld::FindLife(const NodeId& id) const {
  for (const auto& life : lives_) {
    if (life->member->self().id == id) return life.get();
  }
  return nullptr;
}

void MembershipWorld::Start(int host) {
  ++counts_.lives;
  NodeRecord self{.id = NodeId{Id{.high = random_.NextUint64(), .low = random_.NextUint64()}},
                  .address = fmt::format("10.0.0.{}:7000", host)};
  // Hosts of one name wait for each other.
  if (host / 2 < names_) self.name = fmt::format("name{}", host / 2);
  lives_.push_back(std::make_unique<Life>());
  Life& life = *lives_.back();
  life.host = host;
  life.key = KeyOf(self.id);
  life.member = std::make_unique<SimulatedMember>(
      self,
      MembershipOptions{.lease = std::chrono::nanoseconds(kLease), .page_records = kPageRecords},
      store_, static_cast<int>(lives_.size()) - 1, random_,
      [this, &life](SimulatedMember&) { Note(life); });
  life.member->Go();
}

void MembershipWorld::Note(Life& life) {
  const NodeLease& own = life.member->own();
  if (suspicious_ && Draw(3) == 0) life.member->Suspect();
  if (own.state() == NodeLease::State::kMember && !std::exchange(life.joined, true)) {
    ++counts_.members;
    if (!epochs_.insert(own.self().epoch).second) {
      throw Internal("two lives have the epoch {}", own.self().epoch);
    }
  }
  for (const NodeChange& change : life.member->TakeChanges()) CheckChange(life, change);
  if (own.state() == NodeLease::State::kOver) NoteEnd(life);
}

void MembershipWorld::NoteEnd(Life& life) {
  if (std::exchange(life.over, true)) return;
  const NodeLease& own = life.member->own();
  switch (own.end()) {
    case NodeLease::End::kNone:
      throw Internal("a life is over and does not say why");
    case NodeLease::End::kLeft:
      ++counts_.left;
      break;
    case NodeLease::End::kLeaseOver:
      ++counts_.fenced;
      if (calm_ && now_ - life.troubled_at > 2 * kLease) {
        throw Internal("a life is over although it could reach the store");
      }
      break;
    case NodeLease::End::kNameTaken: {
      ++counts_.names_taken;
      const bool younger = std::ranges::any_of(lives_, [&](const auto& other) {
        const NodeRecord& self = other->member->self();
        return self.name == own.self().name && self.epoch > own.self().epoch;
      });
      if (!younger) throw Internal("a life has lost its name to none that is younger");
      break;
    }
  }
  starts_[life.host] = now_ + DrawTime(kLease);
}

void MembershipWorld::CheckChange(Life& observer, const NodeChange& change) {
  changed_at_ = now_;
  const NodeId id = change.node.id;
  const Life* const life = FindLife(id);
  if (life == nullptr) throw Internal("node {} has never been", ToString(id));
  switch (change.kind) {
    case NodeChange::Kind::kMet:
      ++counts_.met;
      if (observer.dead.contains(id)) throw Internal("node {} is back from the dead", ToString(id));
      if (!observer.met.insert(id).second) throw Internal("node {} is met again", ToString(id));
      break;
    case NodeChange::Kind::kChanged:
      ++counts_.draining;
      break;
    case NodeChange::Kind::kDied:
      ++counts_.died;
      if (life->member->Lives())
        throw Internal("node {} is said to be dead, and lives", ToString(id));
      observer.dead.insert(id);
      break;
  }
}

void MembershipWorld::CheckNames() {
  for (int name = 0; name < names_; ++name) {
    int holders = 0;
    for (const auto& life : lives_) {
      if (life->host / 2 == name && life->member->Lives()) ++holders;
    }
    if (holders < 2) continue;
    ++counts_.doubled_names;
    if (now_ - fail_over_at_ > kForgottenMax) throw Internal("name{} has two holders", name);
  }
}

void MembershipWorld::CheckLeases() const {
  if (now_ - fail_over_at_ <= kForgottenMax) return;
  for (const auto& life : lives_) {
    if (!life->member->Lives()) continue;
    const NodeRecord& self = life->member->self();
    if (store_.Has(StoreTable::kNodes, life->key) &&
        (self.name.empty() || store_.Has(StoreTable::kNames, self.name))) {
      continue;
    }
    throw Internal("node {} lives and its lease is over", ToString(self.id));
  }
}

// ---- What happens.

void MembershipWorld::Run() {
  for (int host = 0; host < hosts_; ++host) Start(host);
  const std::int64_t disturbed_until = kLease * (1 + Draw(5));
  while (now_ < disturbed_until) {
    StepTo(std::min(now_ + DrawTime(kLease / 2), disturbed_until));
    Disturb();
  }
  HealAll();
  // Those that are left begin, the dead are over, and all doubts, too.
  StepTo(now_ + 5 * kLease);
  CheckRest();
  for (const auto& life : lives_) counts_.leases_again += life->member->leases_again();
}

std::int64_t MembershipWorld::NextAt(std::int64_t most) const {
  std::int64_t next = std::min(most, store_.next_at());
  for (const auto& life : lives_) {
    if (life->member->runs()) next = std::min({next, life->member->WakeAt(), life->leave_at});
  }
  next = std::min(next, fails_over_at_);
  for (const auto& [host, at] : starts_) next = std::min(next, at);
  return std::min(std::max(next, now_ + kStep), most);
}

void MembershipWorld::StepTo(std::int64_t time) {
  for (std::int64_t next = NextAt(time);; next = NextAt(time)) {
    now_ = next;
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (lives_[i]->member->runs()) store_.Cut(static_cast<int>(i), lives_[i]->cut_until > now_);
    }
    store_.Advance(now_);
    LivesGo();
    StartDue();
    if (fails_over_at_ <= now_) FailOver();
    CheckNames();
    CheckLeases();
    if (now_ == time) return;
  }
}

void MembershipWorld::LivesGo() {
  for (const auto& life : lives_) {
    SimulatedMember& member = *life->member;
    if (!member.runs()) continue;
    if (life->leave_at <= now_) {
      life->leave_at = kNever;
      member.Leave();
    }
    if (member.WakeAt() <= now_) member.Go();
    if (member.over()) member.End();
  }
}

void MembershipWorld::StartDue() {
  for (int host = 0; host < hosts_; ++host) {
    const auto start = starts_.find(host);
    if (start == starts_.end() || start->second > now_) continue;
    starts_.erase(start);
    Start(host);
  }
}

void MembershipWorld::Disturb() {
  if (fail_overs_ > 0 && Draw(fail_overs_) == 0 && fails_over_at_ == kNever) {
    fails_over_at_ = now_ + (calm_ ? 0 : DrawTime(kOldPrimaryMax));
    for (const auto& life : lives_) {  // It has a reason.
      if (!calm_ && Draw(2) == 0) life->cut_until = std::max(life->cut_until, fails_over_at_);
    }
  }
  std::vector<Life*> running;
  for (const auto& life : lives_) {
    if (life->member->runs()) running.push_back(life.get());
  }
  if (running.empty()) return;
  DisturbLife(*running[static_cast<std::size_t>(Draw(static_cast<int>(running.size())))]);
}

void MembershipWorld::DisturbLife(Life& life) {
  switch (Draw(5)) {
    case 0:  // Is killed.
      life.member->End();
      starts_[life.host] = now_ + DrawTime(kLease);
      return;
    case 1:
      life.cut_until = now_ + DrawTime(3 * kLease);
      life.troubled_at = life.cut_until;
      return;
    case 2:
      life.troubled_at = now_ + DrawTime(2 * kLease);
      return life.member->Pause(life.troubled_at);
    case 3:
      life.leave_at = now_ + DrawTime(kLease / 2);
      return life.member->Drain();
    default:
      life.member->Suspect();
  }
}

void MembershipWorld::FailOver() {
  ++counts_.fail_overs;
  fail_over_at_ = now_;
  fails_over_at_ = kNever;
  store_.FailOver(Draw(2) == 0 ? kOldPrimaryMax : DrawTime(kOldPrimaryMax));
  if (!calm_ && Draw(4) == 0) store_.Refuse(now_ + DrawTime(6 * kLease));
  const std::int64_t outage = Draw(2) == 0 ? 0 : DrawTime(calm_ ? kLease / 20 : kLease / 2);
  for (const auto& life : lives_) life->cut_until = std::max(life->cut_until, now_ + outage);
}

void MembershipWorld::HealAll() {
  store_.Refuse(now_);
  fails_over_at_ = kNever;
  store_.set_faults({.delay = kLease / 50});
  for (const auto& life : lives_) {
    life->cut_until = std::min(life->cut_until, now_);
    life->member->Pause(0);
  }
}

void MembershipWorld::CheckRest() const {
  std::size_t members = 0;
  for (const auto& life : lives_) members += life->member->Lives() ? 1 : 0;
  for (const auto& life : lives_) {
    if (!life->member->runs()) continue;
    const NodeLease& own = life->member->own();
    if (!life->member->Lives()) {
      const bool waits = std::ranges::any_of(lives_, [&](const auto& other) {
        return other->member->Lives() && !own.self().name.empty() &&
               other->member->self().name == own.self().name;
      });
      if (!waits) throw Internal("node {} does not get in", ToString(own.self().id));
      continue;
    }
    for (const auto& [key, node] : life->member->others().nodes()) {
      const Life* const other = FindLife(node.id);
      if (other == nullptr || !other->member->Lives()) {
        throw Internal("node {} is dead, and node {} does not know", key, ToString(own.self().id));
      }
    }
    if (life->member->others().nodes().size() + 1 != members) {
      throw Internal("node {} does not know all others", ToString(own.self().id));
    }
  }
  if (store_.size(StoreTable::kNodes) != members) {
    throw Internal("{} nodes have {} records", members, store_.size(StoreTable::kNodes));
  }
  if (now_ - changed_at_ < kLease / 2) throw Internal("it does not come to rest");
}

}  // namespace menger::simulation
