#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Peers that lends workers. Of nodes that want some who has the fewest of this node's
// is first; so that a program with much to do leaves room for one that comes later, workers are
// asked back from who has more: at once from who has two more, and from who has one more once he
// has had it for a while, so that the odd one goes round. Calls that have begun are not disturbed.
namespace menger {
namespace {

constexpr std::size_t kLentMax = 512;  // Of all peers.

// Nanoseconds. So long somebody waits for what becomes free by itself before others are asked for
// it, and so long a worker stays with who has one more than another.
constexpr std::int64_t kShareAfter = 20'000'000;
constexpr std::int64_t kTurn = 500'000'000;

// So long who borrows now and then is taken for one who does: others are not told each time.
constexpr std::int64_t kSharesFor = 1'000'000'000;

// What it occupies may come back.
bool IsShared(const Worker& worker) { return !worker.stays && !worker.rests; }

std::size_t SharedWith(const Peer& peer) {
  return static_cast<std::size_t>(
      std::ranges::count_if(peer.lent, [](const auto& loan) { return IsShared(*loan.second); }));
}

std::size_t KeptBy(const Peer& peer) {  // Of these, those that were not asked back.
  return static_cast<std::size_t>(std::ranges::count_if(peer.lent, [](const auto& loan) {
    return IsShared(*loan.second) && !loan.second->asked_back;
  }));
}

}  // namespace

void Peers::LendToAll() {
  if (node_.options.threads) return;  // They are part of the driver.
  std::vector<Peer*> wanting;
  for (const auto& [index, peer] : peers_) {
    if (peer->wanted.empty()) {
      peer->short_since = 0;
    } else if (peer->program) {
      wanting.push_back(peer.get());
    }
  }
  owed_.clear();
  while (!wanting.empty()) {
    const auto next = std::ranges::min_element(
        wanting, {}, [](const Peer* peer) { return std::pair(SharedWith(*peer), peer->lent_at); });
    if (LendTo(**next)) continue;
    if (!(*next)->wanted.empty()) ShareWith(**next);
    wanting.erase(next);
  }
}

// One worker; false if there is none that it could have now.
bool Peers::LendTo(Peer& peer) {
  std::size_t lent = 0;
  for (const auto& [index, other] : peers_) lent += other->lent.size();
  if (lent >= kLentMax) return false;
  for (auto& [text, count] : peer.wanted) {
    if (count == 0 || !node_.drains.MayLend(text)) continue;
    Worker* const worker = LendOne(peer, text, count);
    if (worker == nullptr) {
      SayFull(peer, text);
      continue;
    }
    Lent(peer, *worker, text);
    if (--count == 0) peer.wanted.erase(text);
    return true;
  }
  std::erase_if(peer.wanted, [](const auto& wanted) { return wanted.second == 0; });
  return false;
}

void Peers::Lent(Peer& peer, Worker& worker, const std::string& scheduling) {
  if (!std::exchange(worker.rests, false)) {
    worker.loan = ++last_loan_;
    worker.borrower = peer.index;
    peer.lent.emplace(worker.loan, &worker);
    node_.effects.Lent(worker, peer);
  }
  worker.lent_at = node_.now;
  peer.lets_go = false;
  peer.lent_at = node_.now;
  peer.short_since = 0;
  Tell(peer.index,
       {.kind = PeerMessage::Kind::kLend, .loan = worker.loan, .scheduling = scheduling});
}

Worker* Peers::LendOne(Peer& peer, const std::string& scheduling, std::uint32_t count) {
  SchedulingClass* const need = FindWanted(peer, scheduling);
  if (need == nullptr || need->foreign || IsOwed(need->need)) return nullptr;
  return peer.program == kOwnProgram ? node_.scheduler.Lend(*need)
                                     : node_.guests.Lend(peer, *need, count);
}

SchedulingClass* Peers::FindWanted(const Peer& peer, const std::string& scheduling) {
  try {
    return scheduling.starts_with('@') ? node_.groups.ClassOf(peer, scheduling)
                                       : &node_.scheduler.ClassFor(scheduling);
  } catch (const Error&) {
    return nullptr;  // It takes this node for another than it is.
  }
}

// Where nodes do calls in turn this one is waited for, unless it has no room: then no worker that
// it starts for them comes, either.
void Peers::SayFull(Peer& peer, const std::string& scheduling) {
  const SchedulingClass* const need = FindWanted(peer, scheduling);
  if (need == nullptr || !need->spread || node_.scheduler.HasRoomFor(*need)) return;
  if (!peer.told_full.insert(scheduling).second) return;
  Tell(peer.index, {.kind = PeerMessage::Kind::kFull, .scheduling = scheduling});
}

// ---- Shares.

// It has as few as anyone who still wants some, and there was nothing for it.
void Peers::ShareWith(Peer& poor) {
  if (poor.short_since == 0) poor.short_since = node_.now;
  if (node_.now - poor.short_since < kShareAfter) return;
  const Peer* const rich = Richest(poor);
  if (rich == nullptr) return;
  for (const auto& [text, count] : poor.wanted) {
    SchedulingClass* const need = FindWanted(poor, text);
    if (need == nullptr || need->foreign || !node_.drains.MayLend(text)) continue;
    if (!CanComeBack(need->need)) continue;
    if (!node_.guests.AreReadyFor(poor, *need, Coming() + 1)) continue;
    owed_.push_back(&need->need);
    if (Worker* const worker = ToShare(*rich, poor, need->need)) return AskBack(*worker);
  }
}

// What richer ones would take of what that one waits for.
bool Peers::IsOwed(const Resources& need) const {
  return std::ranges::any_of(owed_,
                             [&need](const Resources* owed) { return owed->Overlaps(need); });
}

std::size_t Peers::Coming() const {
  std::size_t coming = 0;
  for (const auto& [index, peer] : peers_) coming += SharedWith(*peer) - KeptBy(*peer);
  return coming;
}

// Who has more than it will have with all that was asked back; null if nobody has.
const Peer* Peers::Richest(const Peer& poor) const {
  const Peer* rich = nullptr;
  std::size_t most = 0;
  const std::size_t own = SharedWith(poor) + Coming();
  for (const auto& [index, peer] : peers_) {
    const std::size_t kept = KeptBy(*peer);
    if (peer.get() == &poor || kept <= most) continue;
    rich = peer.get();
    most = kept;
  }
  return most > own ? rich : nullptr;
}

// Not where actors have it.
bool Peers::CanComeBack(const Resources& need) const {
  Resources shared = node_.scheduler.available();
  for (const auto& [index, peer] : peers_) {
    for (const auto& [loan, worker] : peer->lent) {
      if (IsShared(*worker) && !worker->blocked()) shared.Add(worker->serving->need);
    }
  }
  return shared.Contains(need);
}

// One that the poor would have instead of the rich; null if that shall keep what it has for now.
Worker* Peers::ToShare(const Peer& rich, const Peer& poor, const Resources& need) const {
  Worker* longest = nullptr;
  for (const auto& [loan, worker] : rich.lent) {
    const bool helps = IsShared(*worker) && !worker->blocked() && !worker->asked_back &&
                       worker->serving->need.OverlapsLack(need, node_.scheduler.available());
    if (helps && (longest == nullptr || worker->lent_at < longest->lent_at)) longest = worker;
  }
  if (longest == nullptr) return nullptr;
  const bool has_one_more = KeptBy(rich) <= SharedWith(poor) + 1;
  return has_one_more && node_.now - longest->lent_at < kTurn ? nullptr : longest;
}

std::optional<std::int64_t> Peers::NextShare() const {
  for (const auto& [index, peer] : peers_) {
    if (peer->short_since == 0) continue;
    const bool others_have = std::ranges::any_of(peers_, [&peer = peer](const auto& other) {
      return other.second != peer && !other.second->lent.empty();
    });
    if (others_have) return node_.now + kShareAfter;
  }
  return std::nullopt;
}

// ---- Memory.

// Whose calls may read here hear how many they are.
void Peers::TellSharers() {
  next_sharers_.reset();
  std::vector<Peer*> sharers;
  for (const auto& [index, peer] : peers_) {
    const bool works =
        std::ranges::any_of(peer->lent, [](const auto& loan) { return !loan.second->rests; });
    const std::int64_t until = peer->lent_at + kSharesFor;
    if (!works && (peer->lent_at == 0 || until <= node_.now)) continue;
    if (!works) next_sharers_ = std::min(next_sharers_.value_or(until), until);
    sharers.push_back(peer.get());
  }
  const auto count = static_cast<std::uint32_t>(sharers.size());
  for (Peer* const sharer : sharers) {
    if (std::exchange(sharer->told_sharers, count) == count) continue;
    Tell(sharer->index, {.kind = PeerMessage::Kind::kSharers, .count = count});
  }
}

// ---- The way back.

void Peers::AskBack(Worker& worker) {
  if (std::exchange(worker.asked_back, true)) return;
  Tell(worker.borrower, {.kind = PeerMessage::Kind::kAskBack, .loan = worker.loan});
}

// Calls of this node wait for what is lent.
void Peers::AskBackForOwn() {
  std::size_t count = 0;
  for (const Actor* const actor : node_.actors.waiting()) {
    if (!actor->construction->scheduling->foreign) ++count;
  }
  for (const auto& scheduling : node_.scheduler.classes()) {
    if (!scheduling->foreign) count += scheduling->ready_count;
  }
  for (const auto& [index, peer] : peers_) {
    for (const auto& [loan, worker] : peer->lent) {
      if (count == 0) return;
      if (!IsShared(*worker)) continue;
      --count;
      AskBack(*worker);
    }
  }
}

void Peers::TakeIn(Worker& worker, bool clean) {
  worker.asked_back = false;
  if (!clean && worker.program != kOwnProgram) return node_.guests.Rest(worker);
  if (!clean) {
    node_.effects.EndWorker(worker, "it was lent to another node");
    return node_.workers.Retire(worker, "it was lent to another node");
  }
  if (Peer* const peer = Find(worker.borrower)) peer->lent.erase(worker.loan);
  worker.loan = 0;
  worker.borrower = 0;
  if (worker.program != kOwnProgram) return node_.guests.TakeIn(worker);
  node_.scheduler.TakeIn(worker);
  if (!node_.scheduler.HasTooMany()) return;
  node_.effects.EndWorker(worker, "it was lent to another node");
  node_.workers.Retire(worker, "it was lent to another node");
}

}  // namespace menger
