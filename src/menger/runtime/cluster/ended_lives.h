#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "menger/base/mutex.h"
#include "menger/runtime/control/node_record.h"
#include "menger/runtime/net/handshake.h"

namespace menger {

// Lives of other nodes that are over for this one, while the control store does not know so: how
// many have ended of what, and which are still named among the members. Any thread.
class EndedLives {
 public:
  // `members`: those whom the store names.
  void Note(const NodeLife& life, const std::string& cause, const std::vector<NodeRecord>& members);
  // It is there after all.
  void Forget(const NodeLife& life);
  bool Has(const NodeLife& life) const;
  std::map<std::string, std::uint64_t> counts() const;  // By cause.

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::uint64_t> counts_ MENGER_GUARDED_BY(mutex_);
  std::vector<NodeLife> lives_ MENGER_GUARDED_BY(mutex_);
};

}  // namespace menger
