#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/testing/node_world.h"

namespace menger {

// A node without calls of its own, and two drivers, whose programs it is to run.
class LendingWorld : public World {
 public:
  explicit LendingWorld(double cpus = 2) : World({.resources = Resources(cpus, 0), .workers = 0}) {
    for (std::uint64_t i = 0; i < 2; ++i) {
      drivers.push_back(&machine.AddPeer(NodeId{Id{.high = 1, .low = 10 + i}}, 1, Resources(0, 0)));
      machine.AwaitProgram(*drivers.back());
    }
  }
  void StartGuest(ProgramIndex program) override { ++starting[program]; }
  void TellPeer(const Peer& to, const PeerMessage& message) override {
    told[to.index].push_back(message);
  }

  using Kind = PeerMessage::Kind;

  void Want(int driver, std::uint32_t count, const std::string& scheduling = "") {
    Tell(driver, {.kind = Kind::kWant, .count = count, .scheduling = scheduling});
  }
  void GiveBack(int driver, LoanNumber loan, bool clean = true) {
    Tell(driver, {.kind = Kind::kGiveBack, .clean = clean, .loan = loan});
  }
  void Tell(int driver, const PeerMessage& message) {
    machine.Receive(*drivers[driver], message);
    machine.Run();
  }
  // As many as were asked for.
  void StartAll(ProgramIndex program) {
    for (; starting[program] > 0; --starting[program]) {
      machine.AddGuest(machine.NewWorkerIndex(), program);
    }
    machine.Run();
  }
  // Loans that the driver was told of since he was asked last.
  std::vector<LoanNumber> Lent(int driver) {
    std::vector<LoanNumber> loans;
    for (const PeerMessage& message : std::exchange(told[drivers[driver]->index], {})) {
      if (message.kind == Kind::kLend) loans.push_back(message.loan);
      if (message.kind == Kind::kAskBack) asked_back[driver].push_back(message.loan);
    }
    return loans;
  }
  // Loans that the driver is to give back, of those that he was told of since he was asked last.
  std::vector<LoanNumber> AskedBack(int driver) {
    Lent(driver);
    return std::exchange(asked_back[driver], {});
  }

  std::vector<Peer*> drivers;
  std::map<ProgramIndex, int> starting;
  std::map<PeerIndex, std::vector<PeerMessage>> told;
  std::map<int, std::vector<LoanNumber>> asked_back;
};

}  // namespace menger
