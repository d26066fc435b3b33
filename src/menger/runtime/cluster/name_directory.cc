#include "menger/runtime/cluster/name_directory.h"

#include <span>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/runtime/calls/client.h"
#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

constexpr std::chrono::milliseconds kPause{10};

}  // namespace

NameDirectory::NameDirectory(ControlStore& store, Hooks hooks, Options options)
    : store_(store), hooks_(std::move(hooks)), options_(options) {
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
  while (const std::optional<NameQuestion> question = Next()) Answer(*question);
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
      answer.holder = HolderOf(question);
    }
  } catch (...) {
    answer.error = TranslateCurrentException();
    LogWarning("nobody can say whose the name '{}' is: {}", question.name, answer.error->what());
  }
  hooks_.on_answer(question, answer);
}

std::optional<NameQuestion> NameDirectory::Next() {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait(lock.native(), [this] {
    shared_->mutex.AssertHeld();
    return shared_->stopping || !shared_->questions.empty();
  });
  if (shared_->stopping) return std::nullopt;
  NameQuestion question = std::move(shared_->questions.front());
  shared_->questions.pop_front();
  return question;
}

std::optional<NamedActor> NameDirectory::HolderOf(const NameQuestion& question) {
  if (question.kind == NameQuestion::Kind::kClaim) return Claim(question);
  std::optional<NamedActor> holder = LookUp(question.name).first;
  // It may have joined a moment ago, or be gone since longer than that.
  if (holder && !AwaitMet(holder->object)) holder.reset();
  return holder;
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
  if (!deadline.expired() && Pause()) return std::nullopt;
  keeper_deadline_.reset();
  throw Unavailable("there is no process that owns detached actors: {}", why);
}

bool NameDirectory::AwaitMet(const ForeignName& name) {
  if (!hooks_.has_met) return true;
  const Deadline deadline = Deadline::After(options_.try_max);
  while (!hooks_.has_met({name.node, name.epoch})) {
    if (deadline.expired() || !Pause()) return false;
  }
  return true;
}

bool NameDirectory::Pause() {
  MutexLock lock(shared_->mutex);
  shared_->changed.wait_for(lock.native(), kPause, [this] {
    shared_->mutex.AssertHeld();
    return shared_->stopping;
  });
  return !shared_->stopping;
}

std::optional<NamedActor> NameDirectory::Claim(const NameQuestion& question) {
  StoreVersion expected = 0;
  for (int i = 0; i < options_.tries; ++i) {
    const StoreResult result =
        Do(StoreOperation::PutIf(StoreTable::kNames, KeyOfActor(question.name), expected,
                                 Encode(question.actor))
               .BoundTo(options_.lease));
    if (result.done()) return question.actor;
    // Its holder; or nobody, by a record that counts no longer: it is replaced.
    auto [holder, version] = LookUp(question.name);
    if (holder) return holder;
    expected = version;
  }
  throw Unavailable("others take it and give it up again and again");
}

// Whose process lives on would keep others from having the name.
void NameDirectory::ReleaseSurely(const NameQuestion& question) {
  do {
    try {
      return Release(question);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnavailable) continue;
      return LogWarning("the name '{}' stays taken: {}", question.name, error.what());
    }
  } while (Pause());
}

void NameDirectory::Release(const NameQuestion& question) {
  const auto [holder, version] = LookUp(question.name);
  if (!holder || holder->actor != question.actor.actor) return;
  Do(StoreOperation::DeleteIf(StoreTable::kNames, KeyOfActor(question.name), version));
}

std::pair<std::optional<NamedActor>, StoreVersion> NameDirectory::LookUp(const std::string& name) {
  const StoreResult result = Do(StoreOperation::Get(StoreTable::kNames, KeyOfActor(name)));
  std::optional<NamedActor> holder;
  if (result.record.version != 0 && !result.record.expired) {
    holder = DecodeNamedActor(result.record.value);
  }
  return {holder, result.record.version};
}

StoreResult NameDirectory::Do(const StoreOperation& operation) {
  std::string why = "it does not answer";
  for (int i = 0; i < options_.tries; ++i) {
    std::uint64_t number = 0;
    {
      const MutexLock lock(shared_->mutex);
      number = ++shared_->asked;
      shared_->result.reset();
    }
    store_.Submit({operation}, Deadline::After(options_.try_max),
                  [shared = shared_, number](std::vector<StoreResult> results) {
                    const MutexLock lock(shared->mutex);
                    if (shared->asked != number || results.empty()) return;
                    shared->result = std::move(results.front());
                    shared->changed.notify_all();
                  });
    MutexLock lock(shared_->mutex);
    shared_->changed.wait_for(lock.native(), 2 * options_.try_max, [this] {
      shared_->mutex.AssertHeld();
      return shared_->stopping || shared_->result.has_value();
    });
    if (shared_->stopping) throw Cancelled("the process leaves the cluster");
    if (!shared_->result) continue;
    const std::optional<Error>& error = shared_->result->error;
    if (!error) return *shared_->result;
    const bool again =
        error->code() == ErrorCode::kUnavailable || error->code() == ErrorCode::kDeadlineExceeded;
    if (!again) throw Error(*error);
    why = error->what();
  }
  throw Unavailable("{}", why);
}

// ---- The records.

std::vector<std::string> NamesIn(ControlStore& store, const Deadline& deadline) {
  const std::string prefix = KeyOfActor("");
  std::vector<std::string> names;
  for (const StoreRecord& record : ScanAll(store, StoreTable::kNames, prefix, deadline)) {
    if (!record.expired) names.push_back(record.key.substr(prefix.size()));
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
