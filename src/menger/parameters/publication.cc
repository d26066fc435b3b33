#include "menger/parameters/publication.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"

namespace menger {

Publication::Publication(ParameterManifest manifest, std::uint16_t incarnation)
    : manifest_(std::move(manifest)),
      pool_(std::make_shared<Pool>()),
      version_{.incarnation = incarnation, .number = 0},
      latest_(FreeBlob()) {}

std::shared_ptr<ParameterBlob> Publication::FreeBlob() {
  std::unique_ptr<ParameterBlob> blob;
  {
    const std::lock_guard lock(pool_->mutex);
    if (!pool_->free.empty()) {
      blob = std::move(pool_->free.back());
      pool_->free.pop_back();
    }
  }
  if (blob == nullptr) {
    blob = std::make_unique<ParameterBlob>(version_, std::vector<float>(manifest_.size(), 0.0F));
  }
  // The last holder gives the blob back under the pool's lock, so what it read happened before the
  // next Publish writes.
  return {blob.release(), [pool = pool_](ParameterBlob* released) {
            std::unique_ptr<ParameterBlob> owned(released);
            const std::lock_guard lock(pool->mutex);
            pool->free.push_back(std::move(owned));
          }};
}

ParameterVersion Publication::Publish(std::span<const float> values) {
  ParameterVersion next;
  {
    const std::lock_guard lock(mutex_);
    next = {.incarnation = version_.incarnation, .number = version_.number + 1};
  }
  Restore(next, values);
  return next;
}

void Publication::Restore(ParameterVersion version, std::span<const float> values) {
  const ParameterVersion latest = Latest()->version();
  if (version.packed() < latest.packed()) {
    throw FailedPrecondition(
        "parameter version {} of incarnation {} cannot follow version {} of incarnation {}: "
        "restore into a fresh publication, or under a higher incarnation",
        version.number, version.incarnation, latest.number, latest.incarnation);
  }
  if (static_cast<std::int64_t>(values.size()) != manifest_.size()) {
    throw InvalidArgument("{} parameters published; the manifest has {}", values.size(),
                          manifest_.size());
  }
  const std::shared_ptr<ParameterBlob> blob = FreeBlob();
  blob->set_version(version);
  std::copy(values.begin(), values.end(), blob->mutable_values().begin());
  std::shared_ptr<const ParameterBlob> old = blob;  // Released after the lock.
  const std::lock_guard lock(mutex_);
  version_ = version;
  latest_.swap(old);
}

std::shared_ptr<const ParameterBlob> Publication::Latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

}  // namespace menger
