#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "menger/runtime/worker/worker_client.h"

// What a worker's calls want of actors that are not theirs by a reference: by their names, or their
// end.
namespace menger {
namespace {

// Longer than the node takes to say that nobody can say (LocalNode::FindActor).
constexpr std::chrono::seconds kNameAnswer{120};
constexpr std::chrono::seconds kKeeperAnswer{400};

}  // namespace

void WorkerClient::KillActor(ActorId actor, ObjectId object, bool may_restart) {
  Send(
      sizeof(KillMessage),
      [&](MessageWriter& writer) {
        writer.Add(
            KillMessage{.may_restart = may_restart ? 1U : 0U, .actor = actor, .object = object});
      },
      Urgency::kNow);
}

std::optional<Client::NamedActor> WorkerClient::FindActor(std::string_view name) {
  CheckOpen();
  Request request{.missing = 1};
  const std::uint64_t number = NewRequest(request, false);
  const std::string text(name);
  Send(
      MessagePart(sizeof(FindMessage)) + MessagePart(text.size() + 1),
      [&](MessageWriter& writer) {
        writer.Add(FindMessage{.request = number});
        writer.AddBytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
      },
      Urgency::kNow);
  // A keeper may have to be started first, and given the program.
  const bool may_take_long = name == kKeeperName;
  Await(request, Deadline::After(may_take_long ? kKeeperAnswer : kNameAnswer));
  {
    const std::lock_guard lock(reading_);
    requests_.erase(number);
  }
  if (request.missing > 0) throw DeadlineExceeded("the node does not say who is '{}'", name);
  const NamedMessage& named = request.named;
  if (named.found == NamedMessage::Found::kNone) return std::nullopt;
  if (named.found == NamedMessage::Found::kUnknown) {
    const std::span<const std::byte> why = request.refusal.bytes();
    throw Unavailable("nobody can say who is '{}': {}", name,
                      std::string(reinterpret_cast<const char*>(why.data()), why.size()).c_str());
  }
  return NamedActor{named.actor, NewHandle(named.object), named.actor_class, named.construction,
                    named.of_another != 0};
}

}  // namespace menger
