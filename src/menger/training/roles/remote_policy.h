#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

#include "menger/collectors/policy.h"
#include "menger/training/roles/inference_board.h"

namespace menger {

// The policy of a collector without a network: an inference role acts for it (InferenceRole), on
// the slab where it lies. For collectors that act in one thread alone. Borrows the board.
class RemotePolicy final : public Policy {
 public:
  // `show` makes a slab reachable for who acts, under the number it is given: called with each slab
  // before the first request for it.
  using ShowSlab = std::function<void(Slab& slab, std::uint32_t number)>;

  // `spec`: that of the policies that act. `while_asking` is called again and again while a request
  // is open, where there is one: to let the role act whom nobody else advances. Throws
  // DeadlineExceeded where a predecessor's last request stays unanswered.
  RemotePolicy(const PolicySpec& spec, InferenceBoard& board, int collector, ShowSlab show,
               std::function<void()> while_asking = {});

  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}  // Who acts does.
  // Waits for the answers. Throws Unavailable once the board is closed, DeadlineExceeded where
  // nobody answers for a minute.
  void Act(std::span<const ActSlice> slices) override;
  using Policy::Act;

 private:
  void Ask(const ActSlice& slice);
  void AwaitAnswer();

  PolicySpec spec_;
  InferenceBoard& board_;
  InferenceDesk& desk_;
  const ShowSlab show_;
  const std::function<void()> while_asking_;
  const Slab* shown_ = nullptr;
};

}  // namespace menger
