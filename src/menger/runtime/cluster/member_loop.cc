#include "menger/runtime/cluster/member_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {
namespace {

constexpr std::chrono::nanoseconds kLook{20'000'000};  // While somebody waits, at his failure.
constexpr std::chrono::nanoseconds kSleepMost{1'000'000'000};

}  // namespace

struct MemberLoop::Inbox {
  struct Answer {
    std::uint64_t number = 0;
    std::vector<StoreResult> results;
    std::optional<StorePage> page;
  };
  void Add(Answer answer, std::int64_t asked_at) {
    {
      const std::lock_guard lock(mutex);
      times.Add(MonotonicNanoseconds() - asked_at);
      answers.push_back(std::move(answer));
    }
    come.notify_all();
  }
  void Knock(bool with_hint) {
    {
      const std::lock_guard lock(mutex);
      knocked = true;
      hint |= with_hint;
    }
    come.notify_all();
  }

  std::mutex mutex;
  std::condition_variable come;
  std::vector<Answer> answers;  // Guarded by mutex, as the following.
  bool knocked = false;
  bool hint = false;
  DurationHistogram times;
};

MemberLoop::MemberLoop(const NodeRecord& self, const MembershipOptions& options,
                       ControlStore& store)
    : store_(store),
      inbox_(std::make_shared<Inbox>()),
      membership_(self, options),
      lives_until_(std::numeric_limits<std::int64_t>::min()),
      watch_(store.Watch(StoreTable::kNodes, "",
                         [inbox = inbox_] { inbox->Knock(/*with_hint=*/true); })),
      thread_({.name = "member"}, [this] { Run(); }) {}

MemberLoop::~MemberLoop() { Stop(); }

void MemberLoop::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  inbox_->Knock(/*with_hint=*/false);
  thread_.Join();
  watch_.reset();
}

void MemberLoop::Run() {
  for (;;) {
    std::int64_t now = MonotonicNanoseconds();
    std::int64_t wake_at = std::numeric_limits<std::int64_t>::max();
    std::function<std::int64_t(std::int64_t)> tend;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      Step(now, lock);
      wake_at = membership_.wake_at();
      if (hooks_ != nullptr) tend = hooks_->tend;
    }
    changed_.notify_all();
    now = MonotonicNanoseconds();
    if (tend) wake_at = std::min(wake_at, tend(now));
    std::unique_lock lock(inbox_->mutex);
    inbox_->come.wait_for(lock,
                          std::clamp(std::chrono::nanoseconds(std::max(wake_at, now) - now),
                                     std::chrono::nanoseconds(0), kSleepMost),
                          [this] { return inbox_->knocked || !inbox_->answers.empty(); });
    inbox_->knocked = false;
  }
}

void MemberLoop::Step(std::int64_t now, MutexLock& lock) {
  std::vector<Inbox::Answer> answers;
  bool hint = false;
  {
    const std::lock_guard inbox_lock(inbox_->mutex);
    answers.swap(inbox_->answers);
    hint = std::exchange(inbox_->hint, false);
  }
  for (Inbox::Answer& answer : answers) {
    if (answer.page) {
      membership_.Read(answer.number, std::move(*answer.page), now);
    } else {
      membership_.Answered(answer.number, answer.results, now);
    }
  }
  if (hint) membership_.Hint(now);
  std::vector<StoreAsk> asks = membership_.Next(now);
  lives_until_.store(membership_.own().lives_until(), std::memory_order_relaxed);
  lock.Unlock();
  for (StoreAsk& ask : asks) Ask(std::move(ask));
  lock.Lock();
  TellChanges(lock);
}

void MemberLoop::Ask(StoreAsk ask) {
  const Deadline deadline = Deadline::After(std::chrono::nanoseconds(ask.patience));
  const std::uint64_t number = ask.number;
  const std::int64_t now = MonotonicNanoseconds();
  if (!ask.batch.empty()) {
    store_.Submit(std::move(ask.batch), deadline,
                  [inbox = inbox_, number, now](std::vector<StoreResult> results) {
                    inbox->Add({.number = number, .results = std::move(results), .page = {}}, now);
                  });
  } else {
    store_.Scan(ask.table, "", std::move(ask.after), ask.limit, deadline,
                [inbox = inbox_, number, now](StorePage page) {
                  inbox->Add({.number = number, .results = {}, .page = std::move(page)}, now);
                });
  }
}

// They stay where they are until somebody wants to know.
void MemberLoop::TellChanges(MutexLock& lock) {
  if (hooks_ == nullptr) return;
  const std::vector<NodeChange> changes = membership_.TakeChanges();
  const NodeLease& own = membership_.own();
  const bool over = own.state() == NodeLease::State::kOver && own.end() != NodeLease::End::kLeft &&
                    !std::exchange(told_over_, true);
  const NodeLease::End end = own.end();
  const Hooks& hooks = *hooks_;
  lock.Unlock();
  for (const NodeChange& change : changes) hooks.on_change(change);
  if (over) hooks.on_over(end);
  lock.Lock();
  told_ = true;
}

NodeRecord MemberLoop::AwaitMember(bool first, const std::function<void()>& failure,
                                   const Deadline& deadline) {
  MutexLock lock(mutex_);
  bool told = false;
  for (;;) {
    const NodeLease& own = membership_.own();
    const bool member = own.state() == NodeLease::State::kMember;
    if (member && (first || !membership_.others().nodes().empty())) return own.self();
    const bool awaits_name = own.awaits_name() && !member;
    if (own.end() == NodeLease::End::kNameTaken || (awaits_name && deadline.expired())) {
      throw FailedPrecondition("there is a node '{}' in the cluster already", own.self().name);
    }
    if (awaits_name && !std::exchange(told, true)) {
      LogWarning("there is a node '{}' in the cluster already: this one waits for its end",
                 own.self().name);
    }
    if (own.state() == NodeLease::State::kOver) {
      throw Unavailable(
          "the control store of the cluster stopped answering while this node joined");
    }
    if (deadline.expired()) {
      throw DeadlineExceeded("the control store of the cluster has not answered in time");
    }
    lock.Unlock();
    failure();
    lock.Lock();
    changed_.wait_for(lock.native(), std::min(deadline.remaining(), kLook));
  }
}

void MemberLoop::Begin(Hooks hooks) {
  MutexLock lock(mutex_);
  hooks_ = std::make_unique<Hooks>(std::move(hooks));
  Wake();
  while (!told_) changed_.wait_for(lock.native(), kLook);  // The loop runs until Stop.
}

void MemberLoop::Wake() { inbox_->Knock(/*with_hint=*/false); }

void MemberLoop::Hint() { inbox_->Knock(/*with_hint=*/true); }

void MemberLoop::Seek(const NodeLife& life) {
  const MutexLock lock(mutex_);
  membership_.Seek(life.node, life.epoch, MonotonicNanoseconds());
}

LeaseEpoch MemberLoop::lease() const {
  const MutexLock lock(mutex_);
  return membership_.own().lease();
}

std::vector<NodeRecord> MemberLoop::Nodes() const {
  const MutexLock lock(mutex_);
  std::vector<NodeRecord> nodes = {membership_.own().self()};
  for (const auto& [key, node] : membership_.others().nodes()) nodes.push_back(node);
  return nodes;
}

DurationHistogram MemberLoop::StoreTimes() const {
  const std::lock_guard lock(inbox_->mutex);
  return inbox_->times;
}

void MemberLoop::Drain() {
  {
    const MutexLock lock(mutex_);
    membership_.Drain(MonotonicNanoseconds());
  }
  Wake();
}

bool MemberLoop::Leave(const Deadline& deadline, const std::function<bool()>& is_in_vain) {
  MutexLock lock(mutex_);
  membership_.Leave(MonotonicNanoseconds());
  lives_until_.store(membership_.own().lives_until(), std::memory_order_relaxed);
  Wake();
  while (membership_.own().state() != NodeLease::State::kOver && !deadline.expired()) {
    changed_.wait_for(lock.native(), std::min(deadline.remaining(), kLook));
    if (membership_.own().state() != NodeLease::State::kOver && is_in_vain()) break;
  }
  return membership_.own().state() == NodeLease::State::kOver;
}

}  // namespace menger
