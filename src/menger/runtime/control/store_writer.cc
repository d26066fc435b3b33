#include "menger/runtime/control/store_writer.h"

#include <mutex>

namespace menger {
namespace {

constexpr std::size_t kBatchMax = 1000;

}  // namespace

struct StoreWriter::Answer {
  std::mutex mutex;
  std::optional<std::vector<StoreResult>> results;  // Guarded by mutex.
};

StoreWriter::StoreWriter(ControlStore& store, std::chrono::nanoseconds deadline)
    : store_(store), deadline_(deadline) {}

void StoreWriter::Put(StoreTable table, std::string key, std::string value) {
  Want({table, std::move(key)}, std::move(value));
}

void StoreWriter::Delete(StoreTable table, std::string key) {
  Want({table, std::move(key)}, std::nullopt);
}

void StoreWriter::Want(Key key, Wish wish) {
  wishes_.insert_or_assign(std::move(key), std::move(wish));
}

// False while it has not come.
bool StoreWriter::TakeAnswer() {
  if (answer_ == nullptr) return true;
  std::vector<StoreResult> results;
  {
    const std::lock_guard lock(answer_->mutex);
    if (!answer_->results) return false;
    results = std::move(*answer_->results);
  }
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (results[i].done()) continue;
    last_error_ = results[i].error;
    // Unless there is a later wish.
    wishes_.insert(std::move(sent_[i]));
  }
  sent_.clear();
  answer_.reset();
  return true;
}

void StoreWriter::Flush() {
  if (!TakeAnswer() || wishes_.empty()) return;
  std::vector<StoreOperation> batch;
  while (!wishes_.empty() && batch.size() < kBatchMax) {
    auto node = wishes_.extract(wishes_.begin());
    const auto& [table, key] = node.key();
    batch.push_back(node.mapped() ? StoreOperation::Put(table, key, *node.mapped())
                                  : StoreOperation::Delete(table, key));
    sent_.emplace_back(std::move(node.key()), std::move(node.mapped()));
  }
  answer_ = std::make_shared<Answer>();
  store_.Submit(std::move(batch), Deadline::After(deadline_),
                [answer = answer_](std::vector<StoreResult> results) {
                  const std::lock_guard lock(answer->mutex);
                  answer->results = std::move(results);
                });
  TakeAnswer();  // Often it is there at once.
}

}  // namespace menger
