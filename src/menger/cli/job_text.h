#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace menger {

// What `menger status` prints of a job: the JSON of its NodeStatus, as text for people. A status
// that lacks a field throws nlohmann::json::exception.
void PrintJob(const nlohmann::json& status);

// As much of an id as people need to tell one node from another.
std::string ShortId(const std::string& id);

}  // namespace menger
