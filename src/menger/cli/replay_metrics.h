#pragma once

#include <string>

#include "menger/replay/protocol/messages.h"

namespace menger {

// What a replay server tells of itself, for people: a line on the server, then a line a table, with
// rates where there is an earlier look.
std::string ReadableText(const ServerInfo& info, const ServerInfo* before);

// As Prometheus reads it (text format 0.0.4).
std::string PrometheusText(const ServerInfo& info);

}  // namespace menger
