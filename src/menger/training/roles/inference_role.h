#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/collectors/policy.h"
#include "menger/training/roles/inference_board.h"
#include "menger/training/roles/role.h"

namespace menger {

struct InferenceRoleOptions {
  int collectors = 1;
  int positions_max = 0;             // Of a batch; 0: no bound.
  std::chrono::nanoseconds wait{0};  // For more, once somebody asks.
};

// Acts for collectors without networks: on all groups that are ready, as one batch, by the newest
// parameters. Its done() are the positions that it has acted on. What comes while it acts waits for
// the next batch, so batches grow by themselves as far as collectors need it. Never done.
class InferenceRole final : public Role {
 public:
  // The slab of that number of a collector; null where it has gone, and another will ask.
  using FindSlab = std::function<Slab*(int collector, std::uint32_t number)>;

  // Borrows the board.
  InferenceRole(const InferenceRoleOptions& options, std::unique_ptr<Policy> policy,
                InferenceBoard& board, FindSlab find);
  ~InferenceRole() override { board_.closed = true; }

  const std::string& name() const override { return name_; }
  Advanced Advance(const Deadline& deadline) override;
  std::int64_t done() const override { return positions_; }
  std::int64_t batches() const { return batches_; }

 private:
  void TakeReady();     // Until there are as many positions as a batch may have.
  bool IsFull() const;  // Nobody else can come into the batch.
  void Answer();

  const std::string name_ = "inference";
  const InferenceRoleOptions options_;
  const std::unique_ptr<Policy> policy_;
  InferenceBoard& board_;
  const FindSlab find_;
  std::atomic<std::int64_t> positions_{0}, batches_{0};

  int next_ = 0;  // Whose turn it is first.
  // Of the batch in hand.
  std::optional<Deadline> more_until_;  // Once somebody asks.
  std::vector<int> askers_;             // Those without a slab among them.
  std::vector<std::uint8_t> is_taken_;  // By collector.
  std::vector<ActSlice> slices_;
  int taken_ = 0;  // Positions.
};

}  // namespace menger
