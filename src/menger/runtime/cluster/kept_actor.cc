#include "menger/runtime/cluster/kept_actor.h"

#include <algorithm>
#include <set>
#include <span>

#include "menger/base/error.h"
#include "menger/runtime/calls/task_spec.h"
#include "menger/runtime/net/wire_bytes.h"

namespace menger {
namespace {

constexpr std::size_t kIdBytes = sizeof(Id);
constexpr std::size_t kObjectBytesMin = 2 * kIdBytes + sizeof(std::uint64_t) + 1 + 4;

std::string TextOf(const WireWriter& writer) {
  const std::span<const std::byte> bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void AddBytes(WireWriter& writer, std::span<const std::byte> bytes) {
  writer.AddText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<std::byte> TakeBytes(WireReader& reader, const char* name) {
  const std::span<const std::byte> bytes = reader.TakeBytes(reader.TakeCount(1, name), name);
  return {bytes.begin(), bytes.end()};
}

void Add(WireWriter& writer, const KeptObject& object) {
  writer.Add(object.name.object);
  writer.Add(object.name.node);
  writer.Add(object.name.epoch);
  writer.AddFlag(object.bytes.has_value());
  if (object.bytes) AddBytes(writer, *object.bytes);
  writer.Add(static_cast<std::uint32_t>(object.inner.size()));
  for (const ObjectId& id : object.inner) writer.Add(id);
}

KeptObject TakeObject(WireReader& reader) {
  KeptObject object;
  object.name.object = ObjectId{reader.TakeId("object")};
  object.name.node = NodeId{reader.TakeId("node")};
  object.name.epoch = reader.Take<std::uint64_t>("epoch");
  if (reader.TakeFlag("value")) object.bytes = TakeBytes(reader, "value");
  object.inner.resize(reader.TakeCount(kIdBytes, "inner"));
  for (ObjectId& id : object.inner) id = ObjectId{reader.TakeId("inner")};
  return object;
}

// The store's bytes are anybody's: what they say is done only if it could have been written.
void Check(const KeptActor& actor) {
  TaskSpec::Validate(actor.construction, CallKind::kConstruct);
  const SpecPointer spec = TaskSpec::Copy(actor.construction);
  const SpecHeader& header = spec->header();
  const bool may_be = header.kind == CallKind::kConstruct && header.named && header.detached &&
                      !header.home.valid() && actor.restarts > 0;
  if (!may_be) throw InvalidArgument("it makes no actor that outlives its owner");
  std::set<ObjectId> known;
  for (const KeptObject& object : actor.objects) {
    known.insert(object.name.object);
    if (actor.state == object.name.object && !object.bytes)
      throw InvalidArgument("it has no state");
  }
  const auto check = [&known](const ObjectId& id) {
    if (!known.contains(id)) throw InvalidArgument("it names an object and does not say which");
  };
  for (const SpecArgument& argument : spec->arguments()) {
    if (argument.object.valid()) check(argument.object);
  }
  std::ranges::for_each(spec->contained(), check);
  for (const KeptObject& object : actor.objects) std::ranges::for_each(object.inner, check);
  if (actor.state) check(*actor.state);
}

}  // namespace

std::string Encode(const KeptActor& actor) {
  WireWriter writer;
  writer.Add(actor.lives);
  writer.Add(actor.restarts);
  AddBytes(writer, actor.construction);
  writer.AddFlag(actor.state.has_value());
  if (actor.state) writer.Add(*actor.state);
  writer.Add(static_cast<std::uint32_t>(actor.objects.size()));
  for (const KeptObject& object : actor.objects) Add(writer, object);
  return TextOf(writer);
}

std::optional<KeptActor> DecodeKeptActor(std::string_view value) {
  try {
    WireReader reader("the record of an actor", std::as_bytes(std::span(value)));
    KeptActor actor;
    actor.lives = reader.Take<std::uint64_t>("lives");
    actor.restarts = reader.Take<std::uint32_t>("restarts");
    actor.construction = TakeBytes(reader, "construction");
    if (reader.TakeFlag("state")) actor.state = ObjectId{reader.TakeId("state")};
    actor.objects.resize(reader.TakeCount(kObjectBytesMin, "objects"));
    for (KeptObject& object : actor.objects) object = TakeObject(reader);
    reader.Finish();
    Check(actor);
    return actor;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string Encode(const KeptOwner& owner) {
  WireWriter writer;
  writer.Add(owner.owner.node);
  writer.Add(owner.owner.epoch);
  writer.AddText(owner.program);
  writer.Add(owner.actor);
  return TextOf(writer);
}

std::optional<KeptOwner> DecodeKeptOwner(std::string_view value) {
  try {
    WireReader reader("the record of an actor's owner", std::as_bytes(std::span(value)));
    KeptOwner owner;
    owner.owner.node = NodeId{reader.TakeId("node")};
    owner.owner.epoch = reader.Take<std::uint64_t>("epoch");
    owner.program = reader.TakeText("program");
    owner.actor = ActorId{reader.TakeId("actor")};
    reader.Finish();
    return owner;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool Counts(const StoreRecord& record, const NodeLife& holder, const RecordReader& reader) {
  if (!record.expired) return true;
  return FailOversOf(record.lease) < FailOversOf(reader.lease()) && reader.is_member(holder);
}

std::vector<std::string> ProgramsWithoutKeeper(ControlStore& store, const RecordReader& reader,
                                               const Deadline& deadline) {
  std::set<std::string> programs;
  for (const StoreRecord& record : ScanAll(store, StoreTable::kActors, "", deadline)) {
    const std::optional<KeptOwner> owner = DecodeKeptOwner(record.value);
    if (owner && !Counts(record, owner->owner, reader)) programs.insert(owner->program);
  }
  return {programs.begin(), programs.end()};
}

}  // namespace menger
