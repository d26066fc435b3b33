#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "menger/runtime/node/foreign_objects.h"
#include "menger/runtime/node/node_parts.h"

// The part of ForeignObjects that makes calls of others' actors.
namespace menger {

bool ForeignObjects::IsForAnother(const SpecHeader& header) const {
  const bool may_be = header.kind == CallKind::kMethod || header.detached;
  if (!may_be || records_.empty()) return false;
  const Object* const home = node_.objects.Find(header.home);
  return home != nullptr && home->foreign && !Find(*home)->orphan;
}

// As its owner is to make it: what is to be his is at home there, and he may not know the function.
Payload ForeignObjects::BytesFor(const TaskSpec& spec) const {
  const SpecHeader& header = spec.header();
  SpecPointer named;
  if (spec.name().empty()) named = spec.Named(node_.effects.NameOfFunction(header.function));
  Payload bytes = Payload::Copy((named != nullptr ? *named : spec).bytes());
  if (header.kind != CallKind::kMethod) {
    constexpr ObjectId kNowhere;
    std::memcpy(bytes.fill().data() + offsetof(SpecHeader, home), &kNowhere, sizeof(kNowhere));
  }
  return bytes;
}

void ForeignObjects::Forward(ProcessIndex process, const Worker* worker, const TaskSpec& spec) {
  const SpecHeader& header = spec.header();
  const Object& home = *node_.objects.Find(header.home);
  const PeerIndex owner = Find(home)->owner;
  const Peer* const peer = node_.peers.Find(owner);
  for (std::uint32_t i = 0; i < header.results; ++i) {
    if (peer != nullptr) {
      MakeResult(*peer, process, worker, spec, i);
      continue;
    }
    Object& result = node_.objects.FindOrMake(ResultOf(header.task, i));
    node_.objects.AddReferrer(process, result);
    Fail(result, FailureKind::kActorUnavailable,
         "the node of the actor that it was to come from was not met yet");
  }
  if (peer == nullptr) return node_.values.SpreadNews();
  if (header.stream_ahead > 0) OpenStream(owner, process, header);
  std::vector<Object*> references;
  for (const SpecArgument& argument : spec.arguments()) {
    if (argument.object.valid()) {
      references.push_back(&node_.objects.FindOrMake(argument.object));
    }
  }
  for (const ObjectId id : spec.contained()) {
    references.push_back(&node_.objects.FindOrMake(id));
  }
  for (Object* const object : references) node_.objects.Hold(*object);
  calls_[owner].push_back({header.task, BytesFor(spec), std::move(references)});
  MakeCalls(owner);
}

bool ForeignObjects::MayBeTold(std::span<Object* const> objects) const {
  return std::ranges::all_of(objects,
                             [this](const Object* object) { return IsRegistered(*object); });
}

// In the order in which they were made here.
void ForeignObjects::MakeCalls(PeerIndex owner) {
  for (;;) {
    const auto found = calls_.find(owner);
    if (found == calls_.end() || !MayBeTold(found->second.front().references)) return;
    const Call call = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) calls_.erase(found);
    MakeCall(owner, call);
  }
}

void ForeignObjects::MakeCall(PeerIndex owner, const Call& call) {
  const bool strange = std::ranges::any_of(call.references, [&](const Object* object) {
    return object->foreign && Find(*object)->owner != owner;
  });
  node_.peers.Tell(owner, {.kind = PeerMessage::Kind::kCall,
                           .clean = strange,
                           .references = NamesFor(*node_.peers.Find(owner), call.references),
                           .call = call.bytes});
  made_.emplace(ForeignCall(owner, call.task), call.references);
  if (!strange) LetGo({owner, call.task});
  EndStream(call.task);
}

// What the call gives is the other node's, which tells it when it is ready.
void ForeignObjects::MakeResult(const Peer& owner, ProcessIndex process, const Worker* worker,
                                const TaskSpec& spec, std::uint32_t index) {
  const ObjectId id = ResultOf(spec.task(), index);
  Object& result = node_.objects.FindOrMake(id);
  node_.objects.AddReferrer(process, result);
  if (!result.foreign) MakeForeign(result, {id, owner.node, owner.epoch});
  Record& record = *Find(result);
  ++record.owed;
  ++record.asked;  // The call brings it.
  node_.objects.Hold(result);
  record.wanted = true;
  Task* const caller = worker != nullptr ? FindCaller(*worker, spec.header().parent) : nullptr;
  if (caller == nullptr || !RunsAlike(*caller)) return;
  const FunctionTimes& times =
      node_.scheduler.TimesOf(spec.header().function, spec.header().callee, spec.name());
  HoldForFurtherRuns(*caller, result, CalleeOf(spec), times.name_number, node_.objects);
}

void ForeignObjects::LetGo(const ForeignCall& call) {
  const auto found = made_.find(call);
  if (found == made_.end()) return;
  const std::vector<Object*> references = std::move(found->second);
  made_.erase(found);
  for (Object* const object : references) node_.objects.Release(*object);
}

}  // namespace menger
