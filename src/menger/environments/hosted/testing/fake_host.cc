// A host in C++ for tests: CartPole, and in the step that the request names ({"fault", "step"}) it
// does what hosts should not.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/environments/cart_pole.h"
#include "menger/environments/hosted/host_server.h"
#include "menger/environments/simulator_group.h"

namespace menger {
namespace {

void Misbehave(const std::string& fault) {
  std::fprintf(stderr, "about to: %s\n", fault.c_str());
  if (fault == "exit") std::_Exit(3);
  if (fault == "kill") kill(getpid(), SIGKILL);
  if (fault == "segfault") {
    signal(SIGSEGV, SIG_DFL);
    kill(getpid(), SIGSEGV);
  }
  if (fault == "hang") std::this_thread::sleep_for(std::chrono::seconds(600));
  throw FailedPrecondition("the cart fell off");
}

class FaultyGroup final : public EnvironmentGroup {
 public:
  FaultyGroup(const GroupOptions& options, std::string fault, std::int64_t step)
      : group_(options), errors_(options.errors), fault_(std::move(fault)), step_(step) {}

  const EnvironmentSpec& spec() const override { return group_.spec(); }
  void Reset(Slab& slab, int row) override { group_.Reset(slab, row); }
  void Step(Slab& slab, int row) override {
    if (slab.first_step() + row == step_) {
      if (fault_ != "restart") Misbehave(fault_);
      if (errors_->Take()) LogWarning("the cart fell off \xff; a fresh episode begins");
    }
    group_.Step(slab, row);
  }
  void ResetParked(Slab& slab, int row) override { group_.ResetParked(slab, row); }
  void StepRandomly(Slab& slab, int row, std::span<const int> steps, std::uint64_t seed) override {
    group_.StepRandomly(slab, row, steps, seed);
  }
  void Save(ArchiveWriter& archive) const override {
    if (fault_ == "kill when saved") kill(getpid(), SIGKILL);
    group_.Save(archive);
  }
  void Load(ArchiveReader& archive) override { group_.Load(archive); }
  std::vector<EnvironmentMetric> TakeMetrics() override {
    return {{.name = "wobble", .sum = 0.5, .count = 1}};
  }

 private:
  SimulatorGroup<CartPole> group_;
  ErrorBudget* const errors_;
  const std::string fault_;
  const std::int64_t step_;
};

EnvironmentEntry Open(const std::string& text) {
  const nlohmann::json request = nlohmann::json::parse(text);
  const std::string fault = request.value("fault", "");
  const std::int64_t step = request.value("step", std::int64_t{-1});
  if (fault == "describe") throw NotFound("there is no such cart");
  return {.spec = SpecOf<CartPole>({}), .make_group = [fault, step](const GroupOptions& options) {
            return std::make_unique<FaultyGroup>(options, fault, step);
          }};
}

}  // namespace
}  // namespace menger

int main(int argc, char** argv) { return menger::ServeGroup(argc, argv, menger::Open); }
