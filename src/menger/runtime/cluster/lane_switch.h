#pragma once

#include <memory>
#include <span>

#include "menger/runtime/cluster/refusal_log.h"
#include "menger/runtime/net/peer_stream.h"

namespace menger {

class NodeStreams;
class ProgramServer;
class QuestionServer;
class StoreServer;

// Who is told of those that connect to a node: passes each stream on to whom its lane concerns, and
// closes those that concern nobody here.
class LaneSwitch final : public PeerStreamOwner {
 public:
  // Null: nobody. They outlive the service of the streams.
  LaneSwitch(NodeStreams& nodes, StoreServer* store, ProgramServer* programs,
             QuestionServer& questions);

  void Opened(std::shared_ptr<PeerStream> stream) override;
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames) override;
  void HasRoom(PeerStream& stream) override;
  void Ended(PeerStream& stream, const Error& why) override;
  void Failed(const std::string& address, const Error& why) override;

  RefusalLog& refusals() { return refusals_; }

 private:
  NodeStreams& nodes_;
  StoreServer* const store_;
  ProgramServer* const programs_;
  QuestionServer& questions_;
  RefusalLog refusals_;
};

}  // namespace menger
