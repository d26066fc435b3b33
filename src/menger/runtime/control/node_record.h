#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/runtime/values/ids.h"
#include "menger/runtime/values/resources.h"

namespace menger {

// What a node says of itself in StoreTable::kNodes, under KeyOf(id).
//
// One start of a node is one life. Its id is drawn at the start, its epoch is that of its first
// lease: both are never another's. Its name, if it has one, is what its engine calls it in all its
// lives; its address is where it may be found, and says nothing of who answers there.
struct NodeRecord {
  enum class State : std::uint8_t {
    kUp,
    kDraining,  // Lends nothing more, and will leave.
  };
  NodeId id;
  std::uint64_t epoch = 0;
  std::string name;
  std::string address;
  Resources resources;
  std::uint64_t job = 0;  // Of a driver, whose calls other nodes do; else 0.
  State state = State::kUp;
  std::uint64_t store_bytes = 0;  // Of values in its memory, at the most.
};

// "" for none; else what fits into a line, and into the control store. Throws InvalidArgument.
void CheckNodeName(std::string_view name);

// Whether both live on one machine, as far as their addresses tell.
bool AreBeside(const NodeRecord& one, const NodeRecord& other);

std::string KeyOf(const NodeId& id);

std::string Encode(const NodeRecord& record);
// For whoever looks at a cluster: {"nodes": [{"id": ..., "name": ..., "address": ..., "job": ...,
// "state": "up", "store_bytes": 1000000, "resources": {"cpu": 4.0}}]}, in this order.
std::string ToJson(const std::vector<NodeRecord>& nodes);
// Nothing, if `value` is none; the id is the key's, 32 hexadecimal digits.
std::optional<NodeRecord> DecodeNodeRecord(std::string_view key, std::string_view value);

}  // namespace menger
