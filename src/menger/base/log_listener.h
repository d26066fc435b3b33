#pragma once

#include <functional>
#include <string_view>

#include "menger/base/log.h"

namespace menger {

// Called with every line that is logged, without the time of day, after it was written; by the
// thread that logs, so it must take care of threads itself and must not log. For a process whose
// standard error nobody reads as it comes. Set once, before other threads log.
using LogListener = std::function<void(LogLevel level, std::string_view text)>;
void SetLogListener(LogListener listener);

}  // namespace menger
