#include "menger/runtime/control/control_store.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <utility>

namespace menger {
namespace {

constexpr int kPageRecords = 256;

// Starts what ends with a call of its argument, and waits for that.
template <typename Answer, typename Start>
Answer Await(Deadline deadline, Start start) {
  // Shared with the completion, which may come after nobody waits any more.
  const auto answer = std::make_shared<std::promise<Answer>>();
  std::future<Answer> future = answer->get_future();
  start([answer](Answer value) { answer->set_value(std::move(value)); });
  if (future.wait_for(deadline.remaining()) != std::future_status::ready) {
    throw DeadlineExceeded("the control store has not answered in time");
  }
  return future.get();
}

}  // namespace

StoreOperation StoreOperation::Get(StoreTable table, std::string key) {
  return {.kind = Kind::kGet, .table = table, .key = std::move(key)};
}

StoreOperation StoreOperation::Put(StoreTable table, std::string key, std::string value) {
  return {.kind = Kind::kPut, .table = table, .key = std::move(key), .value = std::move(value)};
}

StoreOperation StoreOperation::Delete(StoreTable table, std::string key) {
  return {.kind = Kind::kDelete, .table = table, .key = std::move(key)};
}

StoreOperation StoreOperation::PutIf(StoreTable table, std::string key, StoreVersion expected,
                                     std::string value) {
  StoreOperation operation = Put(table, std::move(key), std::move(value));
  operation.expected = expected;
  return operation;
}

StoreOperation StoreOperation::DeleteIf(StoreTable table, std::string key, StoreVersion expected) {
  StoreOperation operation = Delete(table, std::move(key));
  operation.expected = expected;
  return operation;
}

StoreOperation StoreOperation::Acquire(std::string owner, std::chrono::nanoseconds duration) {
  return {.kind = Kind::kAcquire, .key = std::move(owner), .duration = duration};
}

StoreOperation StoreOperation::Renew(LeaseEpoch lease, std::chrono::nanoseconds duration) {
  return {.kind = Kind::kRenew, .lease = lease, .duration = duration};
}

StoreOperation StoreOperation::BoundTo(LeaseEpoch epoch) && {
  lease = epoch;
  return std::move(*this);
}

std::vector<StoreResult> RunBatch(ControlStore& store, std::vector<StoreOperation> batch,
                                  Deadline deadline) {
  return Await<std::vector<StoreResult>>(deadline, [&](ControlStore::Completion completion) {
    store.Submit(std::move(batch), deadline, std::move(completion));
  });
}

StorePage RunScan(ControlStore& store, StoreTable table, const std::string& prefix,
                  const std::string& after, int limit, Deadline deadline) {
  StorePage page = Await<StorePage>(deadline, [&](ControlStore::PageCompletion completion) {
    store.Scan(table, prefix, after, limit, deadline, std::move(completion));
  });
  if (page.error) throw Error(*page.error);
  return page;
}

std::vector<StoreRecord> ScanAll(ControlStore& store, StoreTable table, const std::string& prefix,
                                 Deadline deadline) {
  std::vector<StoreRecord> records;
  std::string after;
  do {
    StorePage page = RunScan(store, table, prefix, after, kPageRecords, deadline);
    std::ranges::move(page.records, std::back_inserter(records));
    after = std::move(page.next);
  } while (!after.empty());
  return records;
}

std::optional<StoreResult> RefuseWrongSize(const StoreOperation& operation) {
  const auto refuse = [&](const char* what, std::size_t bytes, std::size_t min, std::size_t max) {
    return StoreResult{
        .outcome = StoreResult::Outcome::kFailed,
        .error = InvalidArgument("a {} of the control store has {} bytes; it may have {} to {}",
                                 what, bytes, min, max)};
  };
  const bool has_key = operation.kind != StoreOperation::Kind::kRenew;
  if (has_key && (operation.key.empty() || operation.key.size() > kStoreKeyBytesMax)) {
    return refuse("key", operation.key.size(), 1, kStoreKeyBytesMax);
  }
  if (operation.value.size() > kStoreValueBytesMax) {
    return refuse("value", operation.value.size(), 0, kStoreValueBytesMax);
  }
  return std::nullopt;
}

}  // namespace menger
