#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/store_codec.h"
#include "menger/runtime/control/control_store.h"

namespace menger {

// A request to a control store elsewhere that has not been answered. One of the completions is
// given; Fail or Complete calls it, once.
struct OpenRequest {
  Deadline deadline;
  ControlStore::Completion completion;
  ControlStore::PageCompletion page_completion;
  std::size_t operations = 0;  // Of a batch.
  std::size_t bytes = 0;       // On its way.
  bool sent = false;

  // Whether an answer is one to it.
  bool Expects(const StoreAnswer& answer) const;
  void Complete(StoreAnswer answer) const;
  void Fail(const Error& why) const;
};

// All that a client has not been answered, by number. Whoever takes one out completes it. Without a
// lock of its own.
class OpenRequests {
 public:
  void Add(std::uint64_t number, OpenRequest request);
  OpenRequest* Find(std::uint64_t number);
  OpenRequest Take(std::uint64_t number);  // Of one that is there.

  std::vector<OpenRequest> TakeAll();
  std::vector<OpenRequest> TakeSent();
  std::vector<OpenRequest> TakeLate();
  // When to look for late ones next, of MonotonicNanoseconds; the end of time if there are none.
  std::int64_t look_at() const;

  std::size_t size() const { return requests_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  template <typename Condition>
  std::vector<OpenRequest> TakeIf(Condition condition);

  std::map<std::uint64_t, OpenRequest> requests_;
  std::size_t bytes_ = 0;
};

}  // namespace menger
