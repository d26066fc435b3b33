#include "menger/runtime/faulty_store.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace menger {

class FaultyStore::Watching : public StoreWatch {
 public:
  Watching(FaultyStore& store, StoreTable table, std::string prefix, std::function<void()> hint)
      : store_(store), hint_(std::move(hint)) {
    inner_ = store.store_.Watch(table, std::move(prefix), [this] {
      due_ = due_ || !store_.Happens(store_.options_.loses_a_hint);
    });
    place_ = store_.watchings_.insert(store_.watchings_.end(), this);
  }
  ~Watching() override { store_.watchings_.erase(place_); }

  bool due() const { return due_; }
  void Hint() {
    due_ = false;
    hint_();
  }

 private:
  FaultyStore& store_;
  const std::function<void()> hint_;
  bool due_ = false;
  std::list<Watching*>::iterator place_;
  std::unique_ptr<StoreWatch> inner_;
};

FaultyStore::FaultyStore(ControlStore& store, FaultyStoreOptions options)
    : store_(store), options_(options), random_(Random::FromSeed(options.seed)) {}

void FaultyStore::Submit(std::vector<StoreOperation> batch, Deadline deadline,
                         Completion completion) {
  const std::size_t size = batch.size();
  batches_.push_back({.operations = std::move(batch),
                      .deadline = deadline,
                      .completion = std::move(completion),
                      .results = std::vector<std::optional<StoreResult>>(size)});
}

void FaultyStore::Scan(StoreTable table, std::string prefix, std::string after, int limit,
                       Deadline deadline, PageCompletion completion) {
  scans_.push_back([=, this] {
    if (Happens(options_.fails)) return completion({.error = Unavailable("a page was lost")});
    store_.Scan(table, prefix, after, limit, deadline, completion);
  });
}

std::unique_ptr<StoreWatch> FaultyStore::Watch(StoreTable table, std::string prefix,
                                               std::function<void()> hint) {
  return std::make_unique<Watching>(*this, table, std::move(prefix), std::move(hint));
}

bool FaultyStore::Advance() {
  std::vector<Step> steps;
  AddSteps(steps);
  if (steps.empty()) return false;
  steps[static_cast<std::size_t>(random_.Integers(0, std::ssize(steps)))]();
  return true;
}

void FaultyStore::AddSteps(std::vector<Step>& steps) {
  // An operation waits for those before it that are on the same key.
  std::set<std::tuple<bool, StoreTable, std::string, LeaseEpoch>> busy;
  for (auto batch = batches_.begin(); batch != batches_.end(); ++batch) {
    bool finished = true;
    for (std::size_t i = 0; i < batch->operations.size(); ++i) {
      if (batch->results[i]) continue;
      finished = false;
      const StoreOperation& operation = batch->operations[i];
      const bool is_lease = operation.kind >= StoreOperation::Kind::kAcquire;
      if (busy.emplace(is_lease, operation.table, operation.key, is_lease ? operation.lease : 0)
              .second) {
        steps.push_back(
            [this, batch, i] { batch->results[i] = Run(batch->operations[i], batch->deadline); });
      }
    }
    if (finished) steps.push_back([this, batch] { Answer(batch); });
  }
  for (auto scan = scans_.begin(); scan != scans_.end(); ++scan) {
    steps.push_back([this, scan] {
      const Step step = std::move(*scan);
      scans_.erase(scan);
      step();
    });
  }
  for (Watching* watching : watchings_) {
    if (watching->due()) steps.push_back([watching] { watching->Hint(); });
  }
}

void FaultyStore::Answer(std::list<Batch>::iterator batch) {
  std::vector<StoreResult> results;
  for (std::optional<StoreResult>& result : batch->results) results.push_back(*std::move(result));
  const Completion completion = std::move(batch->completion);
  batches_.erase(batch);
  completion(std::move(results));
}

StoreResult FaultyStore::Run(const StoreOperation& operation, Deadline deadline) {
  StoreResult unavailable{.outcome = StoreResult::Outcome::kFailed,
                          .error = Unavailable("the answer of the store was lost")};
  if (Happens(options_.fails)) return unavailable;
  StoreResult result;
  store_.Submit({operation}, deadline,
                [&](std::vector<StoreResult> results) { result = std::move(results.front()); });
  if (Happens(options_.is_doubtful)) return unavailable;
  return result;
}

}  // namespace menger
