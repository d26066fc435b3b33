#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "menger/runtime/cluster/cluster_access.h"
#include "menger/runtime/cluster/list_nodes.h"

namespace menger {

// A process of a cluster: what the control store has of it, and what it said of itself.
struct ViewedMember {
  ListedNode listed;
  nlohmann::json status;  // Its NodeStatus; null where it said nothing:
  std::string failure;    // why.
};

// All of a cluster, nodes and drivers, at one moment or nearly so.
struct ClusterView {
  std::vector<ViewedMember> members;
};

// "up", "draining", or "lost": its lease is over.
const char* LeaseStateName(const ListedNode& listed);

// Reads at the head who is there, and asks each process at its own address. Throws as ListNodes.
ClusterView LookAtCluster(const ClusterAccess& access);

// Asks one process of a cluster, by the number of its job, its id (or the beginning of it) or its
// name; "" is the only job that runs. Throws NotFound, and InvalidArgument where several would do.
std::string AskMember(const ClusterAccess& access, const std::string& wish,
                      const std::string& question);

// Tables for people: nodes, then jobs with their calls, actors and losses.
void Print(const ClusterView& view);

// {"nodes": [{"id": ..., "name": ..., "address": ..., "job": 0, "state": "up", "resources": {...},
// "status": {...}, "failure": ""}]}; a driver has a job, a node none.
std::string ToJson(const ClusterView& view);

}  // namespace menger
