#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "menger/environments/environment.h"
#include "menger/tensor/slab.h"

namespace menger {

// The JSON texts of the host protocol. Reading throws InvalidArgument that names what is wrong.

// {"name", "observation": [leaf...], "action": [leaf...], "max_episode_steps", "reward_threshold",
// "description", "resumable", "metrics"}; a leaf is {"name", "dtype", "shape", "space", "low",
// "high", "counts"}. Numbers that JSON lacks are the strings "inf", "-inf" and "nan".
struct HostedSpec {
  EnvironmentSpec spec;
  bool resumable = false;            // Whether kSave and kLoad keep the whole state.
  std::vector<std::string> notices;  // What somebody who trains should be told: one line each.
};
std::string ToJson(const HostedSpec& hosted);
HostedSpec HostedSpecFromJson(const std::string& text);

// What kAttach says: what to make, which columns, and where everything lies in the slab.
//
// {"request": {...}, "descriptor": N, "bytes": N,
//  "slab": {"observation", "state", "action", "policy": [leaf...], "horizon", "history",
//           "positions"},
//  "arrays": [{"part", "leaf", "offset", "item", "row"}...],
//  "group": {"first_environment", "first_position", "count", "group", "worker", "seed",
//            "reset_mode": "same_step"|"between_slabs", "clip_actions"}}
//
// Of a leaf only name, dtype and shape are said. `offset` is that of row 0, position 0; rows before
// and after are `row` bytes away, positions `item` bytes.
struct HostAttachment {
  std::string request;  // JSON.
  int descriptor = -1;  // Of the slab's memory, inherited.
  SlabSpec slab;
  GroupOptions group;  // Without `errors`.
};
std::string ToJson(const HostAttachment& attachment, const Slab& slab);
// The slab's columns are one block of as many positions: the same addresses, all that a host needs.
HostAttachment HostAttachmentFromJson(const std::string& text);

}  // namespace menger
