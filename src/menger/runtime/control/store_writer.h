#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "menger/runtime/control/control_store.h"

namespace menger {

// Brings records into a control store in batches: of what changes often only the last wish is
// written, and what the store has refused is tried again. One owner writes these keys. One thread
// at a time; the store answers on any.
class StoreWriter {
 public:
  // The store outlives the writer.
  explicit StoreWriter(ControlStore& store,
                       std::chrono::nanoseconds deadline = std::chrono::seconds(10));

  void Put(StoreTable table, std::string key, std::string value);
  void Delete(StoreTable table, std::string key);

  // Takes the answer to the last batch; sends the next when there is one.
  void Flush();

  // What the store does not have yet.
  std::size_t waiting() const { return wishes_.size() + sent_.size(); }
  const std::optional<Error>& last_error() const { return last_error_; }  // Of the store.

 private:
  using Key = std::pair<StoreTable, std::string>;
  using Wish = std::optional<std::string>;  // None: the key is to go.
  struct Answer;                            // Of the store, on whatever thread.

  void Want(Key key, Wish wish);
  bool TakeAnswer();

  ControlStore& store_;
  const std::chrono::nanoseconds deadline_;
  std::map<Key, Wish> wishes_;
  std::vector<std::pair<Key, Wish>> sent_;
  std::shared_ptr<Answer> answer_;  // To what was sent; shared with the completion.
  std::optional<Error> last_error_;
};

}  // namespace menger
