#include <algorithm>
#include <utility>

#include "menger/runtime/node/node_parts.h"

// The part of Actors that makes those again elsewhere that live on a node which will leave.
namespace menger {
namespace {

constexpr std::string_view kMoved = "its actor lives on elsewhere";

}  // namespace

bool Actors::IsToMove(const Actor& actor) {
  return actor.worker != nullptr && actor.worker->lender != 0 && actor.worker->asked_back;
}

// One in a placement group has no other place than its bundle.
void Actors::AskToMove(Worker& worker) {
  Actor& actor = *worker.actor;
  if (actor.checkpoint_every == 0 || actor.construction->scheduling->group != nullptr) return;
  worker.asked_back = true;
  std::vector<Task*> none;  // They come later: the worker is another node's.
  node_.scheduler.Empty(worker, none);
  ServeLater(actor);
}

// It does nothing now. What it has done since its last checkpoint becomes one first, so that no
// call need be done once more. There may be no room for that, or the one before not be loaded yet:
// then it is made again from that.
void Actors::MoveSaved(Actor& actor) {
  if (actor.state == Actor::State::kDead || actor.coming != nullptr) return;
  const auto next_is = [&actor](auto&& is) {
    return !actor.mailbox.empty() && is(*actor.mailbox.front());
  };
  const auto is_save = [](const Task& task) { return task.header().kind == CallKind::kSave; };
  const bool is_itself = actor.state == Actor::State::kAlive && !next_is(Checkpoints::IsUpkeep);
  if (is_itself && !actor.log.empty() && !std::exchange(actor.worker->saved, true)) {
    node_.checkpoints.Ask(actor);
  }
  if (next_is(is_save)) {
    if (OfferCalls(actor, 1) == 0) ServeLater(actor);
    return;
  }
  const bool stays = std::ranges::any_of(actor.log, &Task::unrepeatable);
  if (!stays) return Move(actor);
  actor.worker->asked_back = false;  // It could not be made again.
  Serve(actor);
}

// No death: its program need not allow for any.
void Actors::Move(Actor& actor) {
  Object& stands_for = *actor.object;
  node_.objects.Hold(stands_for);  // As where a worker dies.
  ++node_.counts.actors_moved;
  EndHome(actor, kMoved);
  MakeAgain(actor);
  node_.objects.Release(stands_for);
}

}  // namespace menger
