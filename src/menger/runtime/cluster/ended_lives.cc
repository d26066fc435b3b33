#include "menger/runtime/cluster/ended_lives.h"

#include <algorithm>

namespace menger {

void EndedLives::Note(const NodeLife& life, const std::string& cause,
                      const std::vector<NodeRecord>& members) {
  const MutexLock lock(mutex_);
  ++counts_[cause];
  std::erase_if(lives_, [&members](const NodeLife& one) {
    return std::ranges::none_of(members, [&one](const NodeRecord& member) {
      return member.id == one.node && member.epoch == one.epoch;
    });
  });
  lives_.push_back(life);
}

void EndedLives::Forget(const NodeLife& life) {
  const MutexLock lock(mutex_);
  std::erase(lives_, life);
}

bool EndedLives::Has(const NodeLife& life) const {
  const MutexLock lock(mutex_);
  return std::ranges::find(lives_, life) != lives_.end();
}

std::map<std::string, std::uint64_t> EndedLives::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace menger
