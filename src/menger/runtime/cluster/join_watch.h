#pragma once

#include <optional>
#include <string>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/runtime/cluster/remote_store.h"

namespace menger {

// Why a process that joins a cluster does not come to it: whoever waits learns it in time.
class JoinWatch {
 public:
  // `store`: null for a head's own. Outlives this.
  JoinWatch(const RemoteStore* store, std::string address);

  // To be called now and then. Throws what does not pass by itself, as another token or
  // certificate; of anything else the log has a line once it has lasted for two seconds.
  void Look();
  // What is to be thrown for `error`, by which the join has ended.
  Error WhyNot(const Error& error) const;

 private:
  std::optional<Error> LastFailure() const;

  const RemoteStore* const store_;
  const std::string address_;
  const Stopwatch since_;
  bool told_ = false;
};

}  // namespace menger
