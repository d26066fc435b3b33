#include "menger/runtime/simulation/simulated_membership.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

constexpr std::int64_t kHundredth = 100'000'000;
constexpr std::int64_t kLease = 100 * kHundredth;
constexpr std::int64_t kStep = kLease / 200;  // What happens within one happens at its end.

}  // namespace

SimulatedMembership::SimulatedMembership(Random& random)
    : random_(random),
      store_(random, kLease / 5, random.Uniform(1 - kClockDrift, 1 + kClockDrift)) {
  store_.set_faults({.delay = kLease / 40, .lag = kLease / 2});
}

SimulatedMembership::~SimulatedMembership() = default;

SimulatedMembership::Life* SimulatedMembership::Find(const NodeId& id) {
  const auto found =
      std::ranges::find_if(lives_, [&](const auto& life) { return life->member->self().id == id; });
  return found != lives_.end() ? found->get() : nullptr;
}

void SimulatedMembership::Start(int node, std::uint64_t number) {
  const NodeRecord self{.id = NodeId{Id{.high = random_.NextUint64(), .low = random_.NextUint64()}},
                        .address = fmt::format("10.0.0.{}:7000", node)};
  lives_.push_back(std::make_unique<Life>(Life{.node = node, .life = number}));
  Life& life = *lives_.back();
  life.member = std::make_unique<SimulatedMember>(
      self, MembershipOptions{.lease = std::chrono::nanoseconds(kLease)}, store_,
      static_cast<int>(lives_.size()) - 1, random_,
      [this, &life](SimulatedMember&) { Note(life); });
  present_[node] = &life;
  settled_ = false;
  life.member->Go();
}

void SimulatedMembership::Kill(int node) {
  present_.at(node)->member->End();
  present_.erase(node);
  settled_ = false;
}

void SimulatedMembership::Cut(int node, int hundredths) {
  present_.at(node)->cut_until = now_ + hundredths * kHundredth;
  settled_ = false;
}

void SimulatedMembership::FailOver() {
  store_.FailOver(random_.Integers(0, kLease / 20 * 9));
  settled_ = false;
}

void SimulatedMembership::Note(const Life& life) {
  for (const NodeChange& change : life.member->TakeChanges()) {
    const Life* const other = Find(change.node.id);
    if (other == nullptr) throw Internal("a node is met that has never been");
    const bool died = change.kind == NodeChange::Kind::kDied;
    if (died && other->member->Lives()) {
      throw Internal("node {} is said to be dead, and lives", other->node);
    }
    news_.push_back({life.node, other->node, other->life, died});
  }
}

void SimulatedMembership::StepTo(std::int64_t time) {
  while (now_ < time) {
    std::int64_t next = std::min(time, store_.next_at());
    for (const auto& [node, life] : present_) next = std::min(next, life->member->WakeAt());
    now_ = std::min(std::max(next, now_ + kStep), time);
    for (const auto& [node, life] : present_) {
      store_.Cut(life->member->client(), life->cut_until > now_);
    }
    store_.Advance(now_);
    for (const auto& [node, life] : present_) {
      if (life->member->WakeAt() <= now_) life->member->Go();
    }
  }
}

void SimulatedMembership::Advance(int hundredths) {
  StepTo(now_ + hundredths * kHundredth);
  for (const auto& [node, life] : present_) {
    if (life->member->over()) over_.push_back(node);
  }
  if (!settled_) settled_ = AllKnowAll();
}

bool SimulatedMembership::AllKnowAll() const {
  return std::ranges::all_of(present_, [this](const auto& present) {
    const Life& life = *present.second;
    const auto& nodes = life.member->others().nodes();
    if (!life.member->Lives() || life.cut_until > now_) return false;
    if (nodes.size() + 1 != present_.size()) return false;
    return std::ranges::all_of(present_, [&](const auto& other) {
      return other.second == &life || nodes.contains(KeyOf(other.second->member->self().id));
    });
  });
}

std::vector<SimulatedMembership::News> SimulatedMembership::TakeNews() {
  std::vector<News> news = std::exchange(news_, {});
  std::erase_if(news, [this](const News& one) { return !present_.contains(one.observer); });
  return news;
}

std::vector<int> SimulatedMembership::TakeOver() { return std::exchange(over_, {}); }

}  // namespace menger::simulation
