#include "menger/runtime/simulation/simulated_cluster.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

constexpr std::uint64_t kEventsMax = 400'000;
constexpr std::int64_t kTickNanoseconds = 1'000'000;
// Without anything to do, before the schedule counts as stuck: more than a call may be kept out.
constexpr int kTicksMax = 2'500;
constexpr int kNodesMax = 8;
constexpr int kLease = 100;     // Hundredths of one.
constexpr int kLastTicks = 12;  // After the end: what is lent goes home.

}  // namespace

SimulatedCluster::SimulatedCluster(std::uint64_t seed) : random_(Random::FromSeed(seed)) {
  MakePlans();
}

SimulatedCluster::~SimulatedCluster() = default;

void SimulatedCluster::MakePlans() {
  const int nodes = OneIn(2) ? 1 : OneIn(8) ? 4 + Draw(kNodesMax - 3) : 2 + Draw(2);
  nodes_.resize(static_cast<std::size_t>(nodes));
  epochs_.resize(nodes_.size());
  common_.shared_percent = Draw(3) * 40;
  faithful_ = Draw(4) != 0;
  common_.retries = static_cast<std::uint16_t>(faithful_ ? 10 : Draw(2));
  common_.checkpoint_every = static_cast<std::uint16_t>(faithful_ ? 1 + Draw(4) : 0);
  common_.restarts = static_cast<std::uint16_t>(faithful_ ? 10 : 0);
  if (nodes > 1) {
    common_.gpus = OneIn(3);
    poor_ = OneIn(4);
    faults_ = !OneIn(3);
    common_.seats = OneIn(2);
    common_.spread = OneIn(2);
    common_.strategies = OneIn(2);
    common_.meets = OneIn(2);
    common_.guests = OneIn(2);
    common_.keepsakes = common_.guests && OneIn(2);
    node_deaths_ = OneIn(2) ? 1 + Draw(2) : 0;
    drains_ = OneIn(2) ? 1 + Draw(2) : 0;
    // A node that has never heard of a GPU, or of seats, says so.
    births_ = common_.gpus || common_.seats ? 0 : Draw(3);
    // What was put, or came from an actor, goes with the node where it lies.
    common_.errors = node_deaths_ > 0 && (common_.shared_percent > 0 || common_.gpus || poor_ ||
                                          !faithful_ || common_.spread || common_.meets ||
                                          (common_.seats && node_deaths_ + 1 >= nodes));
    common_.orderly = node_deaths_ == 0;
    // What a node drains is not lost with it, but what its own driver has given away.
    common_.errors |=
        drains_ > 0 && (common_.gpus || poor_ || !faithful_ || common_.spread || common_.meets ||
                        node_deaths_ > 0 || (common_.seats && drains_ + 1 >= nodes));
  }
  if (nodes > 1) membership_ = std::make_unique<SimulatedMembership>(random_);
  for (int i = 0; i < nodes; ++i) StartNode(i);
  if (nodes == 1) return;
  Learn(2 * kLease);
  if (!membership_->settled()) throw Internal("nodes do not find each other");
  haste_ = 1 + Draw(kLease / 10);
  fail_overs_ = OneIn(3) ? 1 + Draw(2) : 0;
}

NodePlan SimulatedCluster::MakeNodePlan(int number) {
  NodePlan plan;
  plan.threads = nodes_.size() == 1 && OneIn(5);
  plan.workers = poor_ && number == 1 ? 0 : 1 + Draw(3);
  plan.gpu = common_.gpus && number == 0;
  // Actors that are left with too few seats would wait for ever.
  if (common_.seats) plan.seats = number != 0 ? 1000 : node_deaths_ + drains_ > 0 ? 0 : Draw(3);
  plan.driver_steps = 10 + Draw(50) / static_cast<int>(nodes_.size());
  plan.room = OneIn(2) ? 1 + static_cast<std::size_t>(Draw(3)) : 100;
  plan.wait_here_max = 5e4 * Draw(3);  // Calls take twice as long.
  plan.reading_bytes_max = OneIn(3) ? 150 : 0;
  plan.deaths = plan.threads ? 0 : Draw(4);
  plan.cancels = OneIn(3) ? 1 + Draw(4) : 0;
  plan.losses = OneIn(3) ? 1 + Draw(common_.meets ? 20 : 6) : 0;
  common_.errors |= plan.cancels > 0 || plan.losses > 0 || (!faithful_ && plan.deaths > 0);
  return plan;
}

void SimulatedCluster::StartNode(int number) {
  const auto at = static_cast<std::size_t>(number);
  nodes_[at] = std::make_unique<SimulatedNode>(number, ++epochs_[at], common_, MakeNodePlan(number),
                                               random_, counts_);
  nodes_[at]->Start();
  if (membership_ != nullptr) membership_->Start(number, epochs_[at]);
}

void SimulatedCluster::KillNode(int number) {
  const auto at = static_cast<std::size_t>(number);
  ++counts_.node_deaths;
  counts_.states.Add(nodes_[at]->machine_states());
  nodes_[at].reset();
  membership_->Kill(number);
  if (births_ == 0) return;
  --births_;
  StartNode(number);
}

bool SimulatedCluster::Drain(int number) {
  SimulatedNode& node = *nodes_[static_cast<std::size_t>(number)];
  const auto stays = [&node](const auto& one) {
    return one != nullptr && one.get() != &node && !one->drains();
  };
  if (node.drains() || std::ranges::none_of(nodes_, stays)) return false;
  if (!node.HasActorsOfOthers() && !OneIn(4)) return false;  // Few have any.
  node.Drain();
  return true;
}

void SimulatedCluster::LetLeave() {
  for (int number = 0; number < static_cast<int>(nodes_.size()); ++number) {
    const auto& node = nodes_[static_cast<std::size_t>(number)];
    if (node == nullptr || !node->MayLeave()) continue;
    ++counts_.drained;
    KillNode(number);
  }
}

void SimulatedCluster::Run() {
  RunUntilQuiet();
  for (const auto& node : nodes_) {
    if (node != nullptr) node->EndGuests();
  }
  RunUntilQuiet();
  CheckNothingLeft();
}

void SimulatedCluster::RunUntilQuiet() {
  int idle_ticks = 0;
  bool driving = true;
  const int last_ticks = nodes_.size() > 1 ? kLastTicks : 2;
  const auto has_calls = [](const auto& node) {
    return node != nullptr && (node->HasCalls() || node->drains());
  };
  const auto settled = [this] { return membership_ == nullptr || membership_->settled(); };
  while (driving || idle_ticks < last_ticks || !settled() ||
         std::ranges::any_of(nodes_, has_calls)) {
    if (++counts_.events > kEventsMax) FailStuck();
    if (DoSomething()) {
      idle_ticks = 0;
      continue;
    }
    driving = std::any_of(nodes_.begin(), nodes_.end(),
                          [](const auto& node) { return node != nullptr && node->Drives(); });
    if (++idle_ticks > kTicksMax) FailStuck();
    if (LetTimePass()) idle_ticks = 0;
  }
}

void SimulatedCluster::CheckNothingLeft() {
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    node->CheckNothingLeft();
    const NodeMachine::Counts& counts = node->machine_counts();
    counts_.node.submitted += counts.submitted;
    counts_.node.retried += counts.retried;
    counts_.node.rebuilt += counts.rebuilt;
    counts_.node.replayed += counts.replayed;
    counts_.node.checkpoints += counts.checkpoints;
    counts_.node.actors_moved += counts.actors_moved;
    counts_.node.bundles_moved += counts.bundles_moved;
    counts_.states.Add(node->machine_states());
  }
}

bool SimulatedCluster::DoSomething() {
  std::vector<std::pair<SimulatedNode*, int>> choices;
  int all = 0;
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    choices.emplace_back(node.get(), node->Choices());
    all += choices.back().second;
  }
  const int flying = static_cast<int>(flying_.size());
  if (all + flying == 0) {
    for (const auto& [node, count] : choices) {
      if (!node->DropSomething()) continue;
      Settle();
      return true;
    }
    return false;
  }
  int choice = Draw(all + flying);
  if (choice < flying) {
    Deliver(static_cast<std::size_t>(choice));
  } else {
    choice -= flying;
    auto at = choices.begin();
    for (; choice >= at->second; ++at) choice -= at->second;
    if (node_deaths_ > 0 && OneIn(100)) {
      --node_deaths_;
      KillNode(at->first->number());
    } else if (drains_ > 0 && OneIn(100) && Drain(at->first->number())) {
      --drains_;
    } else {
      at->first->Do(choice);
    }
  }
  if (OneIn(20)) now_ += kTickNanoseconds;
  if (membership_ != nullptr) Disturb();
  Settle();
  LetLeave();
  return true;
}

void SimulatedCluster::Deliver(std::size_t index) {
  std::swap(flying_[index], flying_.back());
  Flying flying = std::move(flying_.back());
  flying_.pop_back();
  if ((faults_ && OneIn(10)) || Parted(flying.from, flying.to)) {
    ++counts_.packets;
    return;  // Lost.
  }
  SimulatedNode* const node = nodes_[static_cast<std::size_t>(flying.to)].get();
  if (node != nullptr) node->Arrive(flying.from, flying.lane, std::move(flying.packet));
}

void SimulatedCluster::Disturb() {
  const auto some_node = [this] { return Draw(static_cast<int>(nodes_.size())); };
  if (faults_ && OneIn(200)) {
    ++counts_.partings;
    std::erase_if(partings_, [this](const Parting& parting) { return parting.until <= now_; });
    partings_.push_back({some_node(), some_node(), now_ + (1 + Draw(20)) * kTickNanoseconds});
  }
  if (fail_overs_ > 0 && OneIn(200)) {
    --fail_overs_;
    ++counts_.fail_overs;
    membership_->FailOver();
  }
  const int cut = some_node();
  if (node_deaths_ > 0 && OneIn(200) && nodes_[static_cast<std::size_t>(cut)] != nullptr) {
    --node_deaths_;
    membership_->Cut(cut, Draw(2 * kLease));
  }
  if (node_deaths_ > 0 && OneIn(200)) BeginRift(some_node(), some_node());
  if (!rifts_.empty() && OneIn(50)) HealRifts();
  if (membership_->settled()) {
    if (OneIn(20)) Learn(1);
  } else {
    Learn(haste_);
  }
}

bool SimulatedCluster::Parted(int one, int other) const {
  return std::ranges::any_of(partings_, [&](const Parting& parting) {
    return now_ < parting.until &&
           std::minmax(one, other) == std::minmax(parting.one, parting.other);
  });
}

void SimulatedCluster::BeginRift(int one, int other) {
  Rift rift{.nodes = {one, other}};
  for (const int i : {0, 1}) {
    const auto& node = nodes_[static_cast<std::size_t>(rift.nodes[i])];
    const int to = rift.nodes[1 - i];
    if (node == nullptr || nodes_[static_cast<std::size_t>(to)] == nullptr) return;
    if (!node->Knows(to, nodes_[static_cast<std::size_t>(to)]->epoch())) return;
    rift.epochs[i] = node->epoch();
  }
  --node_deaths_;
  ++counts_.rifts;
  nodes_[static_cast<std::size_t>(one)]->HearOfDeath(other, rift.epochs[1]);
  rifts_.push_back(rift);
}

bool SimulatedCluster::HealRifts() {
  const bool any = !rifts_.empty();
  std::erase_if(rifts_, [this](Rift& rift) {
    std::array<SimulatedNode*, 2> nodes{};
    for (const int i : {0, 1}) {
      nodes[i] = nodes_[static_cast<std::size_t>(rift.nodes[i])].get();
      if (nodes[i] == nullptr || nodes[i]->epoch() != rift.epochs[i]) return true;
    }
    if (!std::exchange(rift.both_told, true)) {
      nodes[1]->HearOfDeath(rift.nodes[0], rift.epochs[0]);
      return false;
    }
    // What was under way is lost with the streams of before.
    std::erase_if(flying_, [&](const Flying& flying) {
      return std::minmax(flying.from, flying.to) == std::minmax(rift.nodes[0], rift.nodes[1]);
    });
    nodes[0]->Meet(*nodes[1]);
    nodes[1]->Meet(*nodes[0]);
    return true;
  });
  return any;
}

bool SimulatedCluster::Learn(int hundredths) {
  membership_->Advance(hundredths);
  const std::vector<int> over = membership_->TakeOver();
  for (const int number : over) {
    ++counts_.fenced;
    KillNode(number);
  }
  const std::vector<SimulatedMembership::News> news = membership_->TakeNews();
  for (const SimulatedMembership::News& one : news) {
    SimulatedNode* const observer = nodes_[static_cast<std::size_t>(one.observer)].get();
    const SimulatedNode* const node = nodes_[static_cast<std::size_t>(one.node)].get();
    if (observer == nullptr) continue;
    if (one.died) {
      observer->HearOfDeath(one.node, one.life);
    } else if (node != nullptr && node->epoch() == one.life) {
      observer->Meet(*node);
    }
  }
  return !over.empty() || !news.empty();
}

void SimulatedCluster::Exchange() {
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    for (int to = 0; to < static_cast<int>(nodes_.size()); ++to) {
      for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
        Link* const link = node->LinkTo(to, lane);
        if (link == nullptr) continue;
        for (Link::Packet& packet : link->Outgoing(now_)) {
          flying_.push_back({node->number(), to, lane, std::move(packet)});
        }
      }
    }
  }
}

void SimulatedCluster::Settle() {
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    node->Settle(now_);
    if (!OneIn(4)) {
      node->RunMachine();
      node->Settle(now_);
    }
  }
  Exchange();
}

bool SimulatedCluster::LetTimePass() {
  now_ += kTickNanoseconds;
  const bool learned =
      membership_ != nullptr && Learn(membership_->settled() ? 1 : std::max(haste_, kLease / 10));
  const bool healed = HealRifts();
  if (membership_ != nullptr && membership_->settled()) TellWhoIsOver();
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    node->Settle(now_);
    node->RunMachine();
    node->Settle(now_);
  }
  Exchange();
  LetLeave();
  return learned || healed;
}

// Once all have read who is there, whoever is not is over.
void SimulatedCluster::TellWhoIsOver() {
  if (std::exchange(told_deaths_, counts_.node_deaths) == counts_.node_deaths) return;
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    for (int number = 0; number < static_cast<int>(nodes_.size()); ++number) {
      const auto at = static_cast<std::size_t>(number);
      const std::uint64_t last = nodes_[at] == nullptr ? epochs_[at] : epochs_[at] - 1;
      for (std::uint64_t life = 1; life <= last; ++life) node->HearOfDeath(number, life);
    }
  }
}

void SimulatedCluster::FailStuck() const {
  std::string text = "nothing goes on";
  for (const auto& node : nodes_) {
    if (node != nullptr) text += "; " + node->Describe();
  }
  throw Internal("{}", text);
}

}  // namespace menger::simulation
