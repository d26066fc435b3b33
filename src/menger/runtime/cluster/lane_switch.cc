#include "menger/runtime/cluster/lane_switch.h"

#include <utility>

#include "menger/base/clock.h"
#include "menger/base/log.h"
#include "menger/runtime/cluster/node_streams.h"
#include "menger/runtime/cluster/program_server.h"
#include "menger/runtime/cluster/question_server.h"
#include "menger/runtime/cluster/store_server.h"

namespace menger {

LaneSwitch::LaneSwitch(NodeStreams& nodes, StoreServer* store, ProgramServer* programs,
                       QuestionServer& questions)
    : nodes_(nodes),
      store_(store),
      programs_(programs),
      questions_(questions),
      refusals_([](std::string_view line) { LogWarning("{}", line); }) {}

void LaneSwitch::Opened(std::shared_ptr<PeerStream> stream) {
  switch (stream->peer().lane) {
    case PeerLane::kControl:
    case PeerLane::kBulk:
      return nodes_.Opened(std::move(stream));
    case PeerLane::kStore:
      return store_ != nullptr ? store_->Opened(std::move(stream)) : stream->Close();
    case PeerLane::kFiles:
      return programs_ != nullptr ? programs_->Opened(*stream) : stream->Close();
    case PeerLane::kQuestions:
      return questions_.Opened(std::move(stream));
  }
}

void LaneSwitch::Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) {
  switch (stream.peer().lane) {
    case PeerLane::kControl:
    case PeerLane::kBulk:
      return nodes_.Arrived(stream, frames);
    case PeerLane::kStore:
      if (store_ != nullptr) store_->Arrived(stream, frames);
      return;
    case PeerLane::kFiles:
      if (programs_ != nullptr) programs_->Arrived(stream, frames);
      return;
    case PeerLane::kQuestions:
      return questions_.Arrived(stream, frames);
  }
}

void LaneSwitch::HasRoom(PeerStream& stream) {
  switch (stream.peer().lane) {
    case PeerLane::kControl:
    case PeerLane::kBulk:
      return nodes_.HasRoom(stream);
    case PeerLane::kStore:
      if (store_ != nullptr) store_->HasRoom(stream);
      return;
    case PeerLane::kFiles:
      if (programs_ != nullptr) programs_->HasRoom(stream);
      return;
    case PeerLane::kQuestions:
      return questions_.HasRoom(stream);
  }
}

void LaneSwitch::Ended(PeerStream& stream, const Error& why) {
  switch (stream.peer().lane) {
    case PeerLane::kControl:
    case PeerLane::kBulk:
      return nodes_.Ended(stream, why);
    case PeerLane::kStore:
      if (store_ != nullptr) store_->Ended(stream);
      return;
    case PeerLane::kFiles:
      if (programs_ != nullptr) programs_->Ended(stream);
      return;
    case PeerLane::kQuestions:
      return questions_.Ended(stream);
  }
}

// It may have been a node with another token, which its user would look for in vain there.
void LaneSwitch::Failed(const std::string& address, const Error& why) {
  if (why.code() == ErrorCode::kCancelled) return;
  refusals_.Add(MonotonicNanoseconds(), address, why.what());
}

}  // namespace menger
