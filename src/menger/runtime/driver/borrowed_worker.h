#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "menger/runtime/driver/letter_box.h"
#include "menger/runtime/driver/worker_talk.h"

namespace menger {

// The node's end of a worker that another node has lent it: what one of its own would find in its
// ring goes in letters, and values that lie where the worker lives are told by their names there.
// Its end is told from machine to machine (PeerMessage::kEnd).
class BorrowedWorker final : public WorkerTalk {
 public:
  // `worker`: the machine's record of it. `box` outlives this.
  BorrowedWorker(NodeMachine& machine, Worker& worker, LetterBox& box);

  // It has said that. Throws DataLoss for what it cannot say.
  void Take(std::span<const std::byte> bytes) { Handle(bytes); }

  bool Offer(const Task& task) override;
  // Whether it has begun the call it says later (NodeMachine::Returned).
  bool Recall(const Task& task) override;
  void Announce() override {}
  void Interrupt(const Task& task) override;
  void End(std::string_view) override {}
  bool Drain(NodeMachine&) override { return false; }

 private:
  void Send(std::vector<std::byte> message) override;
  ValueHeader Show(Object& object) override;
  void Check(ObjectValue& value) override;
  void HandleHere(ToNode kind, MessageReader& reader) override;

  LetterBox& box_;
};

}  // namespace menger
