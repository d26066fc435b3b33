#include "menger/runtime/cluster/name_directory.h"

#include <algorithm>
#include <span>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/cluster/kept_actor.h"
#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kSuccessorPause{50};
constexpr std::size_t kLookMax = 500;  // Names at once.

bool IsSame(const NamedActor& one, const NamedActor& other) {
  return one.actor == other.actor && one.object.epoch == other.object.epoch;
}

}  // namespace

NameDirectory::NameDirectory(ControlStore& store, Hooks hooks, Options options)
    : store_(store),
      hooks_(std::move(hooks)),
      options_(options),
      next_look_(Deadline::After(options.look_every)) {
  thread_ = Thread({.name = "names"}, [this] { Run(); });
}

NameDirectory::~NameDirectory() { Stop(); }

void NameDirectory::Stop() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->changed.notify_all();
  }
  thread_.Join();
}

void NameDirectory::Ask(NameQuestion question) {
  const MutexLock lock(shared_->mutex);
  if (shared_->stopping) return;
  shared_->questions.push_back(std::move(question));
  shared_->changed.notify_all();
}

// ---- The thread.

void NameDirectory::Run() {
  while (AwaitWork()) {
    if (const std::optional<NameQuestion> question = Next()) Answer(*question);
    if (!next_look_.expired()) continue;
    if (!own_.empty()) Look();
    next_look_ = Deadline::After(options_.look_every);
  }
}

void NameDirectory::Answer(const NameQuestion& question) {
  if (question.kind == NameQuestion::Kind::kRelease) return ReleaseSurely(question);
  NameAnswer answer;
  try {
    if (question.name == Client::kKeeperName) {
      const std::optional<NameAnswer> keeper = FindKeeper();
      if (!keeper) return Ask(question);
      answer = *keeper;
    } else {
      const std::optional<NameAnswer> found = HolderOf(question);
      if (!found) return AskAgain(question);
      answer = *found;
    }
  } catch (...) {
    answer.error = TranslateCurrentException();
    LogWarning("nobody can say whose the name '{}' is: {}", question.name, answer.error->what());
  }
  hooks_.on_answer(question, answer);
}

bool NameDirectory::AwaitWork() {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait_for(lock.native(), next_look_.remaining(), [this] {
    shared_->mutex.AssertHeld();
    return shared_->stopping || !shared_->questions.empty();
  });
  return !shared_->stopping;
}

std::optional<NameQuestion> NameDirectory::Next() {
  const MutexLock lock(shared_->mutex);
  if (shared_->questions.empty()) return std::nullopt;
  NameQuestion question = std::move(shared_->questions.front());
  shared_->questions.pop_front();
  return question;
}

std::optional<NameAnswer> NameDirectory::HolderOf(const NameQuestion& question) {
  if (question.kind == NameQuestion::Kind::kClaim) return Claim(question);
  const StoreRecord record = LookUp(question.name);
  NameAnswer answer{.holder = HolderIn(record)};
  if (!answer.holder && (IsOpen(record, question) || IsAwaited(record, question))) {
    return std::nullopt;
  }
  // It may have joined a moment ago, or be gone since longer than that.
  if (answer.holder && !AwaitMet(answer.holder->object)) {
    if (IsAwaited(record, question)) return std::nullopt;
    answer.holder.reset();
  }
  return answer;
}

// A store that has failed over calls the record expired, and this process, which has no lease of it
// yet, cannot tell that from a holder whose lease is over: until either it has one, or he is no
// member any longer.
bool NameDirectory::IsOpen(const StoreRecord& record, const NameQuestion& question) {
  const std::optional<NamedActor> holder = DecodeNamedActor(record.value);
  const bool is_open = holder && record.expired &&
                       FailOversOf(record.lease) >= FailOversOf(hooks_.lease()) &&
                       hooks_.is_member({holder->object.node, holder->object.epoch});
  if (!is_open) {
    open_.erase(question.name);
    return false;
  }
  const auto [open, is_new] = open_.emplace(question.name, Deadline::After(options_.successor_max));
  return !open->second.expired();
}

// Its holder is gone, but not his actor: another keeper will have the name for that, which is the
// one that may take it. Not for ever: the program's files may be nowhere any longer.
bool NameDirectory::IsAwaited(const StoreRecord& record, const NameQuestion& question) {
  const std::optional<NamedActor> holder = DecodeNamedActor(record.value);
  if (!holder) return false;
  const std::string key = ToString(holder->actor);
  const StoreRecord kept = Do(StoreOperation::Get(StoreTable::kActors, key)).record;
  const std::optional<KeptOwner> owner = DecodeKeptOwner(kept.value);
  const bool is_he = owner && owner->actor == question.actor.actor;
  if (!owner || is_he) {
    awaited_.erase(question.name);
    return !owner && LookUp(question.name).version != record.version;  // Another has it by now.
  }
  const auto [awaited, is_new] =
      awaited_.emplace(question.name, Deadline::After(options_.successor_max));
  return !awaited->second.expired();
}

// After a while, and the others of that name after it.
void NameDirectory::AskAgain(const NameQuestion& question) {
  if (!Pause(kSuccessorPause)) return;
  const MutexLock lock(shared_->mutex);
  std::deque<NameQuestion>& questions = shared_->questions;
  const auto same =
      std::stable_partition(questions.begin(), questions.end(),
                            [&](const NameQuestion& other) { return other.name != question.name; });
  questions.insert(same, question);
}

std::optional<NameAnswer> NameDirectory::FindKeeper() {
  if (!hooks_.find_keeper) return NameAnswer{};
  if (!keeper_deadline_) keeper_deadline_ = Deadline::After(options_.keeper_max);
  const Deadline deadline = *keeper_deadline_;
  std::string why = "it takes too long to start";
  try {
    const std::optional<ForeignName> keeper = hooks_.find_keeper();
    if (keeper && AwaitMet(*keeper)) {
      keeper_deadline_.reset();
      return NameAnswer{.holder = NamedActor{.object = *keeper}};
    }
  } catch (const Error& error) {
    why = error.what();
    const bool again =
        error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadlineExceeded;
    if (!again) {
      keeper_deadline_.reset();
      throw;
    }
  }
  if (!deadline.expired() && Pause(kPause)) return std::nullopt;
  keeper_deadline_.reset();
  throw Unavailable("there is no process that owns detached actors: {}", why);
}

bool NameDirectory::AwaitMet(const ForeignName& name) {
  if (!hooks_.has_met) return true;
  const Deadline deadline = Deadline::After(options_.try_max);
  const NodeLife life{name.node, name.epoch};
  for (;;) {
    const bool met = hooks_.has_met(life);
    if (met && (!hooks_.is_reached || hooks_.is_reached(life))) return true;
    if (deadline.expired()) return met;
    if (!Pause(kPause)) return false;
  }
}

bool NameDirectory::Pause(std::chrono::nanoseconds pause) {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait_for(lock.native(), pause, [this] {
    shared_->mutex.AssertHeld();
    return shared_->stopping;
  });
  return !shared_->stopping;
}

std::optional<NameAnswer> NameDirectory::Claim(const NameQuestion& question) {
  StoreVersion expected = 0;
  for (int i = 0; i < options_.tries; ++i) {
    if (Take(question.name, question.actor, expected).done()) {
      own_[question.name] = question.actor;
      return NameAnswer{.holder = question.actor};
    }
    // Its holder; or nobody, by a record that counts no longer: it is replaced.
    const StoreRecord record = LookUp(question.name);
    std::optional<NamedActor> holder = HolderIn(record);
    if (holder && IsSame(*holder, question.actor)) own_[question.name] = question.actor;
    if (holder) return NameAnswer{.holder = holder};
    if (IsAwaited(record, question)) return std::nullopt;
    expected = record.version;
  }
  throw Unavailable("others take it and give it up again and again");
}

// A store that has forgotten this process's lease hears of another one soon.
StoreResult NameDirectory::Take(const std::string& name, const NamedActor& actor,
                                StoreVersion expected) {
  const Deadline deadline = Deadline::After(2 * options_.try_max);
  while (true) {
    try {
      return Do(Taking(name, actor, expected));
    } catch (const Error& error) {
      const bool forgotten = error.code() == ErrorCode::kFailedPrecondition;
      if (!forgotten || deadline.expired() || !Pause(kPause)) throw;
    }
  }
}

// Whose process lives on would keep others from having the name.
void NameDirectory::ReleaseSurely(const NameQuestion& question) {
  const auto own = own_.find(question.name);
  if (own != own_.end() && IsSame(own->second, question.actor)) own_.erase(own);
  do {
    try {
      return Release(question);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnavailable) continue;
      return LogWarning("the name '{}' stays taken: {}", question.name, error.what());
    }
  } while (Pause(kPause));
}

void NameDirectory::Release(const NameQuestion& question) {
  const StoreRecord record = LookUp(question.name);
  const std::optional<NamedActor> holder = HolderIn(record);
  if (!holder || !IsSame(*holder, question.actor)) return;
  Do(StoreOperation::DeleteIf(StoreTable::kNames, KeyOfActor(question.name), record.version));
}

// ---- Whether names are still one's own.

void NameDirectory::Look() {
  try {
    for (auto from = own_.begin(); from != own_.end();) {
      std::vector<std::pair<std::string, NamedActor>> looked;
      std::vector<StoreOperation> batch;
      for (; from != own_.end() && looked.size() < kLookMax; ++from) {
        looked.emplace_back(*from);
        batch.push_back(StoreOperation::Get(StoreTable::kNames, KeyOfActor(from->first)));
      }
      const std::vector<StoreResult> results = DoAll(batch);
      for (std::size_t i = 0; i < looked.size(); ++i) {
        LookAt(looked[i].first, looked[i].second, results[i].record);
      }
    }
  } catch (const Error& error) {
    // The store has forgotten this process's lease: it will hear of another one soon.
    const bool forgotten = error.code() == ErrorCode::kFailedPrecondition;
    if (forgotten || error.code() == ErrorCode::kCancelled) return;
    LogWarning("whether names of actors are still theirs cannot be seen: {}", error.what());
  }
}

// Changes own_ at that name alone.
void NameDirectory::LookAt(const std::string& name, const NamedActor& own,
                           const StoreRecord& record) {
  const std::optional<NamedActor> holder = HolderIn(record);
  const bool is_own = holder && IsSame(*holder, own);
  if (is_own && record.lease == hooks_.lease()) return;
  if (!holder || is_own || holder->object.epoch < own.object.epoch) {
    Do(Taking(name, own, record.version));  // Whoever is quicker is seen the next time.
    return;
  }
  LogWarning("the name '{}' is another's since the control store has failed over", name);
  own_.erase(name);
  if (hooks_.on_lost) hooks_.on_lost(own);
}

// ---- What the store has.

StoreOperation NameDirectory::Taking(const std::string& name, const NamedActor& actor,
                                     StoreVersion expected) const {
  return StoreOperation::PutIf(StoreTable::kNames, KeyOfActor(name), expected, Encode(actor))
      .BoundTo(hooks_.lease());
}

StoreRecord NameDirectory::LookUp(const std::string& name) {
  return Do(StoreOperation::Get(StoreTable::kNames, KeyOfActor(name))).record;
}

std::optional<NamedActor> NameDirectory::HolderIn(const StoreRecord& record) const {
  if (record.version == 0) return std::nullopt;
  std::optional<NamedActor> holder = DecodeNamedActor(record.value);
  if (!holder) return holder;
  const NodeLife life{holder->object.node, holder->object.epoch};
  if (!Counts(record, life, {hooks_.lease, hooks_.is_member})) holder.reset();
  return holder;
}

StoreResult NameDirectory::Do(StoreOperation operation) {
  return DoAll({std::move(operation)}).front();
}

std::vector<StoreResult> NameDirectory::DoAll(const std::vector<StoreOperation>& batch) {
  std::string why = "it does not answer";
  for (int i = 0; i < options_.tries; ++i) {
    std::uint64_t number = 0;
    {
      const MutexLock lock(shared_->mutex);
      number = ++shared_->asked;
      shared_->results.clear();
    }
    store_.Submit(batch, Deadline::After(options_.try_max),
                  [shared = shared_, number](std::vector<StoreResult> results) {
                    const MutexLock lock(shared->mutex);
                    if (shared->asked != number) return;
                    shared->results = std::move(results);
                    shared->changed.notify_all();
                  });
    MutexLock lock(shared_->mutex);
    shared_->changed.wait_for(lock.native(), 2 * options_.try_max, [this] {
      shared_->mutex.AssertHeld();
      return shared_->stopping || !shared_->results.empty();
    });
    if (shared_->stopping) throw Cancelled("the process leaves the cluster");
    if (shared_->results.size() != batch.size()) continue;
    const auto failed = std::ranges::find_if(
        shared_->results, [](const StoreResult& result) { return result.error.has_value(); });
    if (failed == shared_->results.end()) return std::move(shared_->results);
    const Error error = *failed->error;
    const bool again =
        error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadlineExceeded;
    if (!again) throw Error(error);
    why = error.what();
  }
  throw Unavailable("{}", why);
}

// ---- The records.

std::vector<std::string> NamesIn(ControlStore& store,
                                 const std::function<bool(const NodeLife& life)>& is_member,
                                 const Deadline& deadline) {
  const std::string prefix = KeyOfActor("");
  std::vector<std::string> names;
  std::vector<std::string> others;
  std::vector<StoreOperation> whose;
  for (const StoreRecord& record : ScanAll(store, StoreTable::kNames, prefix, deadline)) {
    const std::optional<NamedActor> holder = DecodeNamedActor(record.value);
    const bool is_held =
        !record.expired || (holder && is_member({holder->object.node, holder->object.epoch}));
    if (!is_held && !holder) continue;
    (is_held ? names : others).push_back(record.key.substr(prefix.size()));
    if (!is_held) {
      whose.push_back(StoreOperation::Get(StoreTable::kActors, ToString(holder->actor)));
    }
  }
  if (others.empty()) return names;
  // Another keeper will have the actor, and the name.
  const std::vector<StoreResult> owners = RunBatch(store, whose, deadline);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (DecodeKeptOwner(owners[i].record.value)) names.push_back(others[i]);
  }
  return names;
}

std::string KeyOfActor(std::string_view name) {
  constexpr std::string_view kPrefix("\0actor/", 7);
  return std::string(kPrefix).append(name);
}

std::string Encode(const NamedActor& actor) {
  WireWriter writer;
  writer.Add(actor.object.object);
  writer.Add(actor.object.node);
  writer.Add(actor.object.epoch);
  writer.Add(actor.actor);
  writer.Add(actor.actor_class);
  writer.Add(actor.construction.module);
  writer.Add(actor.construction.offset);
  const std::span<const std::byte> bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<NamedActor> DecodeNamedActor(std::string_view value) {
  try {
    WireReader reader("the record of a name", std::as_bytes(std::span(value)));
    NamedActor actor;
    actor.object.object = ObjectId{reader.TakeId("object")};
    actor.object.node = NodeId{reader.TakeId("node")};
    actor.object.epoch = reader.Take<std::uint64_t>("epoch");
    actor.actor = ActorId{reader.TakeId("actor")};
    actor.actor_class = reader.Take<std::uint64_t>("class");
    actor.construction.module = reader.Take<std::uint64_t>("construction");
    actor.construction.offset = reader.Take<std::uint64_t>("construction");
    reader.Finish();
    return actor;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace menger
