#include "menger/runtime/node/shared_names.h"

#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

namespace menger {
namespace {

constexpr std::string_view kBetween = " @";  // NAME @NAMESPACE

}  // namespace

bool SharedNames::IsShared(std::string_view name) const {
  return node_.options.shares_names && name.find(kBetween) != std::string_view::npos;
}

NamedActor SharedNames::Describe(const Actor& actor) const {
  const SpecHeader& construction = actor.construction->header();
  return {.object = node_.foreign.NameOf(*actor.object),
          .actor = actor.id,
          .actor_class = construction.callee,
          .construction = construction.function};
}

// ---- Actors of this owner.

void SharedNames::Claim(Actor& actor) {
  if (!IsShared(actor.name)) return;
  actor.claims_name = true;
  node_.values.AwaitMore(*actor.construction);
  node_.effects.AskName(
      {.kind = NameQuestion::Kind::kClaim, .name = actor.name, .actor = Describe(actor)});
}

void SharedNames::Release(const Actor& actor) {
  if (!IsShared(actor.name)) return;
  node_.effects.AskName(
      {.kind = NameQuestion::Kind::kRelease, .name = actor.name, .actor = Describe(actor)});
  // They waited for its claim; somebody else may have the name, or nobody.
  if (askers_.contains(actor.name)) node_.effects.AskName({.name = actor.name});
}

void SharedNames::Claimed(const NameQuestion& question, const NameAnswer& answer) {
  Actor* const actor = node_.actors.Find(question.actor.actor);
  if (actor == nullptr || !actor->claims_name || actor->state == Actor::State::kDead) return;
  actor->claims_name = false;
  if (answer.holder && answer.holder->actor == actor->id) {
    Tell(question.name, {.holder = Describe(*actor)});
    return node_.values.Came(*actor->construction);
  }
  const std::string why =
      answer.error
          ? fmt::format("its name '{}' could not be had: {}", actor->name, answer.error->what())
          : fmt::format("an actor named '{}' lives already (or its program was killed seconds ago)",
                        actor->name);
  const ErrorCode code = answer.error ? answer.error->code() : ErrorCode::kFailedPrecondition;
  node_.actors.Die(*actor,
                   node_.notes.Describe(FailureKind::kException, code, *actor->construction, why));
}

void SharedNames::Lost(const NamedActor& lost) {
  Actor* const actor = node_.actors.Find(lost.actor);
  if (actor == nullptr || actor->state == Actor::State::kDead) return;
  const std::string why = fmt::format(
      "its name '{}' is another actor's since the control store has failed over", actor->name);
  node_.actors.Kill(*actor, /*may_restart=*/false, why);
  node_.values.SpreadNews();
}

// ---- Who looks for one.

void SharedNames::Find(const Watch& asker, std::string_view name) {
  const Actor* const own = node_.actors.Find(name);
  if (own != nullptr && !own->claims_name) return TellOne(asker, {.holder = Describe(*own)});
  if (own == nullptr && !IsShared(name)) return TellOne(asker, {});
  std::vector<Watch>& askers = askers_[std::string(name)];
  askers.push_back(asker);
  if (own == nullptr && askers.size() == 1) node_.effects.AskName({.name = std::string(name)});
}

void SharedNames::Unask(const Watch& asker) {
  for (auto& [name, askers] : askers_) std::erase(askers, asker);
  std::erase_if(askers_, [](const auto& one) { return one.second.empty(); });
}

void SharedNames::Answered(const NameQuestion& question, const NameAnswer& answer) {
  if (question.kind == NameQuestion::Kind::kClaim) {
    Claimed(question, answer);
  } else if (const Actor* const own = node_.actors.Find(question.name); own == nullptr) {
    Tell(question.name, answer);
  } else if (!own->claims_name) {
    // It came to be, and to have the name, while that was looked up.
    Tell(question.name, {.holder = Describe(*own)});
  }
  node_.values.SpreadNews();
}

void SharedNames::Tell(const std::string& name, const NameAnswer& answer) {
  const auto found = askers_.find(name);
  if (found == askers_.end()) return;
  const std::vector<Watch> askers = std::exchange(found->second, {});
  askers_.erase(found);
  for (const Watch& asker : askers) TellOne(asker, answer);
}

// What stands for the actor is the asker's, too, before he hears of it.
void SharedNames::TellOne(const Watch& asker, const NameAnswer& answer) {
  if (!node_.workers.Speaks(asker.process)) return;
  NameAnswer told = answer;
  if (told.holder) {
    const ForeignName& object = told.holder->object;
    // An actor of this owner that has ended, while its name still says so.
    const Actor* const own = node_.actors.Find(told.holder->actor);
    const bool over = node_.foreign.IsOwn(object)
                          ? own == nullptr || own->state == Actor::State::kDead
                          : node_.foreign.IsOver({object.node, object.epoch});
    if (over) told.holder.reset();
  }
  if (told.holder) node_.foreign.Refer(asker.process, told.holder->object);
  node_.effects.Named(asker, told);
}

}  // namespace menger
