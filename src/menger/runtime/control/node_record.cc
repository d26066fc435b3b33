#include "menger/runtime/control/node_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kPartsOfOne = 1e4;  // See Resources.
constexpr std::size_t kNameBytesMax = 100;

const char* NameOf(NodeRecord::State state) {
  return state == NodeRecord::State::kUp ? "up" : "draining";
}

}  // namespace

void CheckNodeName(std::string_view name) {
  const bool in_a_line = std::ranges::all_of(name, [](char letter) {
    return static_cast<unsigned char>(letter) >= ' ' && letter != 0x7f;
  });
  if (name.size() <= kNameBytesMax && in_a_line) return;
  throw InvalidArgument(
      "'{}' is no name of a node: it has {}", Resources::Shown(name),
      in_a_line ? fmt::format("more than {} bytes", kNameBytesMax) : "a control character");
}

bool AreBeside(const NodeRecord& one, const NodeRecord& other) {
  const auto host = [](const NodeRecord& record) {
    return std::string_view(record.address).substr(0, record.address.rfind(':'));
  };
  return host(one) == host(other);
}

std::string KeyOf(const NodeId& id) { return ToString(id); }

std::string ToJson(const std::vector<NodeRecord>& nodes) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const NodeRecord& node : nodes) {
    nlohmann::ordered_json resources = nlohmann::ordered_json::object();
    for (const Resources::Named& amount : node.resources.amounts()) {
      resources[amount.name] = node.resources.Get(amount.name);
    }
    all.push_back({{"id", KeyOf(node.id)},
                   {"name", node.name},
                   {"address", node.address},
                   {"job", node.job},
                   {"state", NameOf(node.state)},
                   {"store_bytes", node.store_bytes},
                   {"resources", std::move(resources)}});
  }
  const nlohmann::ordered_json json = {{"nodes", std::move(all)}};
  return json.dump(1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string Encode(const NodeRecord& record) {
  nlohmann::ordered_json resources = nlohmann::ordered_json::object();
  for (const Resources::Named& amount : record.resources.amounts()) {
    resources[amount.name] = amount.parts;
  }
  const nlohmann::ordered_json json = {{"epoch", record.epoch},
                                       {"name", record.name},
                                       {"address", record.address},
                                       {"job", record.job},
                                       {"state", NameOf(record.state)},
                                       {"store_bytes", record.store_bytes},
                                       {"resources", std::move(resources)}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

std::optional<NodeRecord> DecodeNodeRecord(std::string_view key, std::string_view value) {
  NodeRecord record;
  const std::optional<Id> id = ParseId(key);
  if (!id) return std::nullopt;
  record.id = NodeId{*id};
  try {
    const nlohmann::json json = nlohmann::json::parse(value);
    json.at("epoch").get_to(record.epoch);
    json.at("name").get_to(record.name);
    json.at("address").get_to(record.address);
    json.at("job").get_to(record.job);
    const auto state = json.at("state").get<std::string>();
    json.at("store_bytes").get_to(record.store_bytes);
    if (state != "up") record.state = NodeRecord::State::kDraining;
    for (const auto& [name, parts] : json.at("resources").items()) {
      record.resources.Set(name, static_cast<double>(parts.get<std::int64_t>()) / kPartsOfOne);
    }
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return record;
}

}  // namespace menger
