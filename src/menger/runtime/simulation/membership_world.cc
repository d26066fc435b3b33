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
// A name may have two holders for so long after a fail-over: while one looks at an old primary, for
// what that gave last, and for what the other was given just before the first wrote itself again.
constexpr std::int64_t kDoubledMax = kOldPrimaryMax + 2 * kLease;
constexpr int kPageRecords = 3;  // So that there are several pages.

}  // namespace

// One start of a node.
struct MembershipWorld::Life {
  Life(const NodeRecord& self, const MembershipOptions& options) : membership(self, options) {}

  std::int64_t Local(std::int64_t time) const {
    return offset + static_cast<std::int64_t>(static_cast<double>(time) * rate);
  }
  std::int64_t WakeAt() const {
    const std::int64_t wake = membership.wake_at();
    if (!runs() || wake == kNever) return kNever;
    const double real = static_cast<double>(wake - offset) / rate;
    return std::max(static_cast<std::int64_t>(real) + late + 1, paused_until);
  }
  bool runs() const { return connection != nullptr; }
  bool Lives(std::int64_t time) const { return runs() && membership.own().Lives(Local(time)); }

  Membership membership;
  std::unique_ptr<ControlStore> connection;  // Null: it is no more.
  std::unique_ptr<StoreWatch> watch;
  int host = 0;
  double rate = 1;
  std::int64_t offset = 0;
  std::int64_t late = 0;
  std::int64_t paused_until = 0;
  std::int64_t cut_until = 0;
  std::int64_t troubled_at = -kNever / 2;  // When it could not go on last.
  std::int64_t leave_at = kNever;
  bool member = false;
  bool over = false;
  std::set<NodeId> met;
  std::set<NodeId> dead;
};

MembershipWorld::MembershipWorld(std::uint64_t seed)
    : random_(Random::FromSeed(seed)),
      store_(random_, kLease / 5, random_.Uniform(1 - kDrift, 1 + kDrift)),
      calm_(Draw(3) == 0),
      suspicious_(Draw(6) == 0),
      hosts_(2 + Draw(3)),
      names_(Draw(3)),
      fail_overs_(4 * Draw(4)),
      fail_over_at_(-10 * kLease) {
  StoreFaults faults;
  faults.delay = DrawTime(calm_ ? kLease / 40 : kLease / 4);
  faults.lag = DrawTime(calm_ ? kLease / 2 : kLease);
  if (!calm_) faults.lost_percent = Draw(3) * 5;
  if (!calm_) faults.mute_percent = Draw(2) * 5;
  store_.set_faults(faults);
}

MembershipWorld::~MembershipWorld() = default;

MembershipWorld::Life* MembershipWorld::FindLife(const NodeId& id) const {
  for (const auto& life : lives_) {
    if (life->membership.own().self().id == id) return life.get();
  }
  return nullptr;
}

void MembershipWorld::Start(int host) {
  ++counts_.lives;
  NodeRecord self{.id = NodeId{Id{.high = random_.NextUint64(), .low = random_.NextUint64()}},
                  .address = fmt::format("10.0.0.{}:7000", host)};
  // Hosts of one name wait for each other.
  if (host < 2 * names_) self.name = fmt::format("name{}", host % names_);
  auto life = std::make_unique<Life>(
      self,
      MembershipOptions{.lease = std::chrono::nanoseconds(kLease), .page_records = kPageRecords});
  const auto client = static_cast<int>(lives_.size());
  life->host = host;
  life->rate = random_.Uniform(1 - kDrift, 1 + kDrift);
  life->offset = DrawTime(1000 * kLease) - now_;
  life->connection = store_.Connect(client);
  Life* const started = life.get();
  life->watch = life->connection->Watch(
      StoreTable::kNodes, "", [this, started] { started->membership.Hint(started->Local(now_)); });
  lives_.push_back(std::move(life));
  Go(*started);
}

void MembershipWorld::Ask(Life& life, StoreAsk ask) {
  if (life.member && ask.batch.size() == 1 && ask.batch[0].kind == StoreOperation::Kind::kAcquire) {
    ++counts_.leases_again;
  }
  const Deadline deadline = Deadline::After(std::chrono::nanoseconds(ask.patience));
  if (!ask.batch.empty()) {
    return life.connection->Submit(
        std::move(ask.batch), deadline,
        [this, &life, number = ask.number](const std::vector<StoreResult>& results) {
          if (life.paused_until > now_) return;
          life.membership.Answered(number, results, life.Local(now_));
          Go(life);
        });
  }
  life.connection->Scan(ask.table, "", ask.after, ask.limit, deadline,
                        [this, &life, number = ask.number](StorePage page) {
                          if (life.paused_until > now_) return;
                          life.membership.Read(number, std::move(page), life.Local(now_));
                          Go(life);
                        });
}

// Does what a life has to do now.
void MembershipWorld::Go(Life& life) {
  if (suspicious_ && Draw(3) == 0) life.membership.Hint(life.Local(now_));
  std::vector<StoreAsk> asks = life.membership.Next(life.Local(now_));
  if (life.membership.own().state() == NodeLease::State::kOver && !asks.empty()) {
    throw Internal("a life that is over asks for something");
  }
  for (StoreAsk& ask : asks) Ask(life, std::move(ask));
  Note(life);
  life.late = DrawTime(kLease / 100);
}

void MembershipWorld::Note(Life& life) {
  const NodeLease& own = life.membership.own();
  if (own.state() == NodeLease::State::kMember && !std::exchange(life.member, true)) {
    ++counts_.members;
    if (!epochs_.insert(own.self().epoch).second) {
      throw Internal("two lives have the epoch {}", own.self().epoch);
    }
  }
  for (const NodeChange& change : life.membership.TakeChanges()) CheckChange(life, change);
  if (own.state() == NodeLease::State::kOver) NoteEnd(life);
}

void MembershipWorld::NoteEnd(Life& life) {
  if (std::exchange(life.over, true)) return;
  const NodeLease& own = life.membership.own();
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
        const NodeRecord& self = other->membership.own().self();
        return self.name == own.self().name && self.epoch > own.self().epoch;
      });
      if (!younger) throw Internal("a life has lost its name to none that is younger");
      break;
    }
  }
  starts_[life.host] = now_ + DrawTime(kLease);
  // Its completions are under way: not here, where one may be running.
  life.leave_at = now_;
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
      if (life->Lives(now_)) throw Internal("node {} is said to be dead, and lives", ToString(id));
      observer.dead.insert(id);
      break;
  }
}

void MembershipWorld::CheckNames() {
  for (int name = 0; name < names_; ++name) {
    int holders = 0;
    for (const auto& life : lives_) {
      if (life->host % names_ == name && life->host < 2 * names_ && life->Lives(now_)) ++holders;
    }
    if (holders < 2) continue;
    ++counts_.doubled_names;
    if (now_ - fail_over_at_ > kDoubledMax) throw Internal("name{} has two holders", name);
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
}

std::int64_t MembershipWorld::NextAt(std::int64_t most) const {
  std::int64_t next = std::min(most, store_.next_at());
  for (const auto& life : lives_) {
    if (life->runs()) next = std::min({next, life->WakeAt(), life->leave_at});
  }
  for (const auto& [host, at] : starts_) next = std::min(next, at);
  return std::min(std::max(next, now_ + kStep), most);
}

void MembershipWorld::StepTo(std::int64_t time) {
  for (std::int64_t next = NextAt(time);; next = NextAt(time)) {
    now_ = next;
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (lives_[i]->runs()) store_.Cut(static_cast<int>(i), lives_[i]->cut_until > now_);
    }
    store_.Advance(now_);
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      Life& life = *lives_[i];
      if (!life.runs()) continue;
      if (life.membership.own().state() == NodeLease::State::kOver) {
        life.watch.reset();
        life.connection.reset();
        continue;
      }
      if (life.leave_at <= now_) {
        life.leave_at = kNever;
        life.membership.Leave(life.Local(now_));
        Go(life);
      }
      if (life.WakeAt() <= now_) Go(life);
    }
    for (int host = 0; host < hosts_; ++host) {
      const auto start = starts_.find(host);
      if (start == starts_.end() || start->second > now_) continue;
      starts_.erase(start);
      Start(host);
    }
    CheckNames();
    if (now_ == time) return;
  }
}

void MembershipWorld::Disturb() {
  if (fail_overs_ > 0 && Draw(fail_overs_) == 0) FailOver();
  std::vector<Life*> running;
  for (const auto& life : lives_) {
    if (life->runs()) running.push_back(life.get());
  }
  if (running.empty()) return;
  DisturbLife(*running[static_cast<std::size_t>(Draw(static_cast<int>(running.size())))]);
}

void MembershipWorld::DisturbLife(Life& life) {
  switch (Draw(5)) {
    case 0:  // Is killed.
      life.watch.reset();
      life.connection.reset();
      starts_[life.host] = now_ + DrawTime(kLease);
      return;
    case 1:
      life.cut_until = now_ + DrawTime(3 * kLease);
      life.troubled_at = life.cut_until;
      return;
    case 2:
      life.paused_until = now_ + DrawTime(2 * kLease);
      life.troubled_at = std::max(life.troubled_at, life.paused_until);
      return;
    case 3:
      life.membership.Drain(life.Local(now_));
      life.leave_at = now_ + DrawTime(kLease / 2);
      return Go(life);
    default:
      life.membership.Hint(life.Local(now_));
  }
}

void MembershipWorld::FailOver() {
  ++counts_.fail_overs;
  fail_over_at_ = now_;
  store_.FailOver(Draw(2) == 0 ? DrawTime(kOldPrimaryMax) : 0);
  if (!calm_ && Draw(4) == 0) store_.Refuse(now_ + DrawTime(4 * kLease));
  const std::int64_t outage = DrawTime(calm_ ? kLease / 20 : kLease / 2);
  for (const auto& life : lives_) life->cut_until = std::max(life->cut_until, now_ + outage);
}

void MembershipWorld::HealAll() {
  store_.Refuse(now_);
  store_.set_faults({.delay = kLease / 50});
  for (const auto& life : lives_) {
    life->cut_until = std::min(life->cut_until, now_);
    life->paused_until = std::min(life->paused_until, now_);
  }
}

void MembershipWorld::CheckRest() const {
  std::size_t members = 0;
  for (const auto& life : lives_) members += life->Lives(now_) ? 1 : 0;
  for (const auto& life : lives_) {
    if (!life->runs()) continue;
    const NodeLease& own = life->membership.own();
    if (!life->Lives(now_)) {
      const bool waits = std::ranges::any_of(lives_, [&](const auto& other) {
        return other->Lives(now_) && !own.self().name.empty() &&
               other->membership.own().self().name == own.self().name;
      });
      if (!waits) throw Internal("node {} does not get in", ToString(own.self().id));
      continue;
    }
    for (const auto& [key, node] : life->membership.others().nodes()) {
      const Life* const other = FindLife(node.id);
      if (other == nullptr || !other->Lives(now_)) {
        throw Internal("node {} is dead, and node {} does not know", key, ToString(own.self().id));
      }
    }
    if (life->membership.others().nodes().size() + 1 != members) {
      throw Internal("node {} does not know all others", ToString(own.self().id));
    }
  }
  if (store_.size(StoreTable::kNodes) != members) {
    throw Internal("{} nodes have {} records", members, store_.size(StoreTable::kNodes));
  }
  if (now_ - changed_at_ < kLease / 2) throw Internal("it does not come to rest");
}

}  // namespace menger::simulation
