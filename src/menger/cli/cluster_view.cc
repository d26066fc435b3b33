#include "menger/cli/cluster_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/memory_need.h"
#include "menger/cli/job_text.h"
#include "menger/runtime/cluster/ask_nodes.h"

namespace menger {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kListPatience{10};
constexpr std::chrono::seconds kStatusPatience{5};   // Of one that may hang.
constexpr std::chrono::seconds kAnswerPatience{60};  // A timeline is long.
constexpr std::size_t kIdLeast = 4;
constexpr std::size_t kLossesShown = 3;  // The newest of a job; all are shown of one job alone.

template <typename T = std::string>
T At(const Json& object, const char* name) {
  return object.at(name).get<T>();
}

std::string BytesText(const Json& status, const char* name) {
  return MemoryText(static_cast<double>(At<std::uint64_t>(status, name)));
}

bool IsMeant(const ListedNode& listed, const std::string& wish) {
  const NodeRecord& node = listed.node;
  if (wish.empty()) return node.job != 0 && !listed.expired;
  if (node.job != 0 && std::to_string(node.job) == wish) return true;
  return node.name == wish || (wish.size() >= kIdLeast && ToString(node.id).starts_with(wish));
}

std::string NameOf(const NodeRecord& node) {
  if (node.job != 0) return fmt::format("job {}", node.job);
  const std::string id = ShortId(ToString(node.id));
  return node.name.empty() ? id : fmt::format("{} ({})", node.name, id);
}

const NodeRecord& FindMember(const std::vector<ListedNode>& nodes, const std::string& wish) {
  std::vector<std::string> all;
  std::vector<const ListedNode*> found;
  for (const ListedNode& listed : nodes) {
    all.push_back(NameOf(listed.node));
    if (IsMeant(listed, wish)) found.push_back(&listed);
  }
  if (found.empty()) {
    throw NotFound("the cluster has {}; there are: {}",
                   wish.empty() ? "no job that runs" : fmt::format("no job or node '{}'", wish),
                   fmt::join(all, ", "));
  }
  if (found.size() > 1) {
    throw InvalidArgument("several would do; name one of: {}", fmt::join(all, ", "));
  }
  return found.front()->node;
}

// ---- Nodes.

// "cpu 1 of 2, gpu 2 of 2", by what the node says, or "cpu 2" by its record.
std::string ResourcesText(const ViewedMember& member) {
  std::vector<std::string> texts;
  const NodeRecord& node = member.listed.node;
  if (member.status.is_null()) {
    for (const Resources::Named& amount : node.resources.amounts()) {
      if (amount.name.starts_with("node:")) continue;  // By which calls ask for this one.
      texts.push_back(fmt::format("{} {:g}", amount.name, node.resources.Get(amount.name)));
    }
  } else {
    for (const Json& resource : member.status.at("resources")) {
      const std::string name = At(resource, "name");
      if (name.starts_with("node:")) continue;
      texts.push_back(fmt::format("{} {:g} of {:g}", name, At<double>(resource, "free"),
                                  At<double>(resource, "total")));
    }
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// "2 for job 17, 1 waits": its workers, by whom they work for.
std::string WorkersText(const Json& status, const std::map<std::string, std::string>& names) {
  std::map<std::string, int> lent;
  int idle = 0;
  for (const Json& worker : status.at("workers")) {
    const std::string to = At(worker, "lent_to");
    if (to.empty()) {
      ++idle;
      continue;
    }
    const auto name = names.find(to);
    ++lent[name != names.end() ? name->second : ShortId(to)];
  }
  std::vector<std::string> texts;
  for (const auto& [name, count] : lent) texts.push_back(fmt::format("{} for {}", count, name));
  if (idle > 0) texts.push_back(fmt::format("{} not lent", idle));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

// Its lease may not be over yet, and it may have ended.
const char* StateName(const ViewedMember& member) {
  return member.status.is_null() && !member.listed.expired ? "silent"
                                                           : LeaseStateName(member.listed);
}

void PrintNode(const ViewedMember& member, const std::map<std::string, std::string>& names) {
  const NodeRecord& node = member.listed.node;
  const bool said = !member.status.is_null();
  fmt::print("{:<8}  {:<12}  {:<21}  {:<8}  {:<10}  {}\n", ShortId(ToString(node.id)),
             node.name.empty() ? "-" : node.name, node.address, StateName(member),
             said ? BytesText(member.status, "store_bytes") : "-", ResourcesText(member));
  fmt::print("          {}\n", said ? "workers: " + WorkersText(member.status, names)
                                    : "says nothing: " + member.failure);
}

// ---- Jobs.

void PrintDriver(const ViewedMember& member) {
  const NodeRecord& node = member.listed.node;
  const Json& status = member.status;
  if (status.is_null()) {
    fmt::print("\njob {}  at {}, {}\n  says nothing: {}\n", node.job, node.address,
               LeaseStateName(member.listed), member.failure);
    return;
  }
  fmt::print("\njob {}  {}, process {} at {}, {}, for {:.1f} s\n", node.job, At(status, "program"),
             At<int>(status, "process"), node.address, LeaseStateName(member.listed),
             At<double>(status, "seconds"));
  const Json& tasks = status.at("tasks");
  fmt::print(
      "  calls    {} waiting, {} ready, {} given to {} workers; {} finished ({:.0f} a "
      "second), {} failed, {} run again\n",
      At<std::uint64_t>(tasks, "waiting"), At<std::uint64_t>(tasks, "ready"),
      At<std::uint64_t>(tasks, "given"), status.at("workers").size(),
      At<std::uint64_t>(tasks, "finished"), At<double>(tasks, "finished_per_second"),
      At<std::uint64_t>(tasks, "failed"), At<std::uint64_t>(tasks, "retried"));
  fmt::print("  actors   {}, {} made again\n", At<std::uint64_t>(status, "actor_count"),
             At<std::uint64_t>(status, "actors_restarted"));
  fmt::print("  objects  {}, {} of them in this process's memory\n",
             At<std::uint64_t>(status, "objects"), BytesText(status, "store_bytes"));
  const Json& losses = status.at("losses");
  for (std::size_t i = 0; i < std::min(losses.size(), kLossesShown); ++i) {
    const auto times = At<std::uint64_t>(losses[i], "times");
    fmt::print("  lost     {:.1f} s ago{}: {}\n", At<double>(losses[i], "seconds_ago"),
               times > 1 ? fmt::format(", the last of {}", times) : "", At(losses[i], "text"));
  }
}

}  // namespace

const char* LeaseStateName(const ListedNode& listed) {
  if (listed.expired) return "lost";
  return listed.node.state == NodeRecord::State::kDraining ? "draining" : "up";
}

ClusterView LookAtCluster(const ClusterAccess& access) {
  ClusterView view;
  std::vector<NodeRecord> asked;
  for (ListedNode& listed : ListNodes(access, Deadline::After(kListPatience))) {
    asked.push_back(listed.node);
    view.members.push_back({.listed = std::move(listed), .status = nullptr, .failure = ""});
  }
  const std::vector<NodeAnswer> answers =
      AskNodes(access, asked, "status", Deadline::After(kStatusPatience));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ViewedMember& member = view.members[i];
    if (answers[i].failure) {
      member.failure = answers[i].failure->what();
      continue;
    }
    member.status = Json::parse(answers[i].text, nullptr, /*allow_exceptions=*/false);
    if (!member.status.is_object()) {
      member.status = nullptr;
      member.failure = "its answer is not to be understood";
    }
  }
  return view;
}

std::string AskMember(const ClusterAccess& access, const std::string& wish,
                      const std::string& question) {
  const std::vector<ListedNode> nodes = ListNodes(access, Deadline::After(kListPatience));
  const NodeRecord& node = FindMember(nodes, wish);
  std::vector<NodeAnswer> answers =
      AskNodes(access, {node}, question, Deadline::After(kAnswerPatience));
  if (answers.front().failure) {
    throw WithContext(*answers.front().failure,
                      fmt::format("{} at {}", NameOf(node), node.address));
  }
  return std::move(answers.front().text);
}

void Print(const ClusterView& view) {
  std::map<std::string, std::string> names;
  for (const ViewedMember& member : view.members) {
    names.emplace(ToString(member.listed.node.id), NameOf(member.listed.node));
  }
  fmt::print("{:<8}  {:<12}  {:<21}  {:<8}  {:<10}  {}\n", "node", "name", "address", "state",
             "values", "free");
  for (const ViewedMember& member : view.members) {
    if (member.listed.node.job == 0) PrintNode(member, names);
  }
  for (const ViewedMember& member : view.members) {
    if (member.listed.node.job != 0) PrintDriver(member);
  }
}

std::string ToJson(const ClusterView& view) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const ViewedMember& member : view.members) {
    const NodeRecord& node = member.listed.node;
    nlohmann::ordered_json resources = nlohmann::ordered_json::object();
    for (const Resources::Named& amount : node.resources.amounts()) {
      resources[amount.name] = node.resources.Get(amount.name);
    }
    nodes.push_back({{"id", ToString(node.id)},
                     {"name", node.name},
                     {"address", node.address},
                     {"job", node.job},
                     {"state", StateName(member)},
                     {"resources", std::move(resources)},
                     {"status", member.status},
                     {"failure", member.failure}});
  }
  return nlohmann::ordered_json{{"nodes", std::move(nodes)}}.dump(
             1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace menger
