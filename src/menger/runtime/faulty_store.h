#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/random.h"
#include "menger/runtime/control_store.h"

namespace menger {

// Probabilities.
struct FaultyStoreOptions {
  std::uint64_t seed = 0;
  double fails = 0;        // An operation or a page is Unavailable, and nothing was done.
  double is_doubtful = 0;  // An operation is done, but said to be Unavailable.
  double loses_a_hint = 0;
};

// A control store as bad as one may be, for simulations and tests: it delays, fails, reorders what
// the interface does not order, and loses hints. The same seed and calls give the same faults.
//
// Without threads or clocks: nothing happens but in Advance. One thread.
class FaultyStore : public ControlStore {
 public:
  // `store` completes everything before it returns, and outlives this.
  FaultyStore(ControlStore& store, FaultyStoreOptions options);

  // Does one thing of those that may come next, drawn at random: an operation, a page, the answer
  // to a batch whose operations are all done, a hint. False if there is none.
  bool Advance();

  void Submit(std::vector<StoreOperation> batch, Deadline deadline, Completion completion) override;
  void Scan(StoreTable table, std::string prefix, std::string after, int limit, Deadline deadline,
            PageCompletion completion) override;
  // The hint comes from Advance. Ends before this store does.
  [[nodiscard]] std::unique_ptr<StoreWatch> Watch(StoreTable table, std::string prefix,
                                                  std::function<void()> hint) override;

 private:
  struct Batch {
    std::vector<StoreOperation> operations;
    Deadline deadline;
    Completion completion;
    std::vector<std::optional<StoreResult>> results;  // Of those that are done.
  };
  class Watching;
  using Step = std::function<void()>;

  bool Happens(double probability) { return random_.Double() < probability; }
  void AddSteps(std::vector<Step>& steps);
  void Answer(std::list<Batch>::iterator batch);
  StoreResult Run(const StoreOperation& operation, Deadline deadline);

  ControlStore& store_;
  const FaultyStoreOptions options_;
  Random random_;
  std::list<Batch> batches_;  // In the order of Submit.
  std::list<Step> scans_;
  std::list<Watching*> watchings_;
};

}  // namespace menger
