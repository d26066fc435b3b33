#include "menger/environments/hosted/spec_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

using nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::pair<Space, std::string_view> kSpaces[] = {{Space::kBox, "box"},
                                                          {Space::kDiscrete, "discrete"},
                                                          {Space::kMultiDiscrete, "multi_discrete"},
                                                          {Space::kMask, "mask"},
                                                          {Space::kLength, "length"}};
constexpr DataType kDataTypes[] = {DataType::kUint8, DataType::kInt32, DataType::kInt64,
                                   DataType::kFloat32, DataType::kFloat64};

json NumberToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double NumberFromJson(const json& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  throw InvalidArgument("'{}' is not a number; besides JSON's there are inf, -inf and nan", text);
}

json BoundsToJson(const std::vector<double>& bounds) {
  json list = json::array();
  for (const double bound : bounds) list.push_back(NumberToJson(bound));
  return list;
}

std::vector<double> BoundsFromJson(const json& list) {
  std::vector<double> bounds;
  for (const json& bound : list) bounds.push_back(NumberFromJson(bound));
  return bounds;
}

DataType DataTypeFromName(const std::string& name) {
  for (const DataType type : kDataTypes) {
    if (NameOf(type) == name) return type;
  }
  throw InvalidArgument("'{}' is not a data type that a slab can hold", name);
}

Space SpaceFromName(const std::string& name) {
  for (const auto& [space, known] : kSpaces) {
    if (known == name) return space;
  }
  throw InvalidArgument("'{}' is not a kind of space", name);
}

json LeafToJson(const LeafSpec& leaf, bool whole) {
  json object = {{"name", leaf.name}, {"dtype", NameOf(leaf.dtype)}, {"shape", leaf.shape}};
  if (!whole) return object;
  for (const auto& [space, name] : kSpaces) {
    if (space == leaf.space) object["space"] = name;
  }
  object["low"] = BoundsToJson(leaf.low);
  object["high"] = BoundsToJson(leaf.high);
  object["counts"] = leaf.counts;
  return object;
}

LeafSpec LeafFromJson(const json& object) {
  LeafSpec leaf{.name = object.at("name").get<std::string>(),
                .dtype = DataTypeFromName(object.at("dtype").get<std::string>()),
                .shape = object.at("shape").get<Shape>(),
                .space = SpaceFromName(object.value("space", "box")),
                .low = BoundsFromJson(object.value("low", json::array())),
                .high = BoundsFromJson(object.value("high", json::array())),
                .counts = object.value("counts", std::vector<std::int64_t>{})};
  if (leaf.space == Space::kBox) {  // Where nothing is said: unbounded.
    if (leaf.low.empty()) leaf.low = {-kInfinity};
    if (leaf.high.empty()) leaf.high = {kInfinity};
    return LeafSpec::Box(leaf.name, leaf.dtype, leaf.shape, leaf.low, leaf.high);
  }
  return leaf;
}

json SpecToJson(const Spec& spec, bool whole) {
  json list = json::array();
  for (const LeafSpec& leaf : spec.leaves()) list.push_back(LeafToJson(leaf, whole));
  return list;
}

Spec SpecFromJson(const json& list) {
  std::vector<LeafSpec> leaves;
  for (const json& leaf : list) leaves.push_back(LeafFromJson(leaf));
  return Spec(std::move(leaves));
}

// Runs `read` on the text parsed; what is missing or of another kind becomes InvalidArgument.
template <typename Reader>
auto Parse(std::string_view what, const std::string& text, Reader read) {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    throw InvalidArgument("{} of a host cannot be read: {}", what, error.what());
  }
}

}  // namespace

std::string ToJson(const HostedSpec& hosted) {
  const EnvironmentSpec& spec = hosted.spec;
  const json object = {{"name", spec.name},
                       {"observation", SpecToJson(spec.observation, /*whole=*/true)},
                       {"action", SpecToJson(spec.action, /*whole=*/true)},
                       {"max_episode_steps", spec.max_episode_steps},
                       {"reward_threshold", NumberToJson(spec.reward_threshold)},
                       {"description", spec.description},
                       {"resumable", hosted.resumable}};
  return object.dump();
}

HostedSpec HostedSpecFromJson(const std::string& text) {
  return Parse("the spec", text, [](const json& object) {
    HostedSpec hosted;
    hosted.spec.name = object.at("name").get<std::string>();
    hosted.spec.observation = SpecFromJson(object.at("observation"));
    hosted.spec.action = SpecFromJson(object.at("action"));
    hosted.spec.max_episode_steps = object.value("max_episode_steps", 0);
    hosted.spec.reward_threshold = NumberFromJson(object.value("reward_threshold", json("nan")));
    hosted.spec.description = object.value("description", "");
    hosted.resumable = object.value("resumable", false);
    hosted.notices = object.value("notices", std::vector<std::string>{});
    return hosted;
  });
}

std::string ToJson(const HostAttachment& attachment, const Slab& slab) {
  json arrays = json::array();
  for (const SlabArray& array : slab.arrays()) {
    arrays.push_back({{"part", array.part},
                      {"leaf", array.leaf},
                      {"offset", array.offset},
                      {"item", array.item},
                      {"row", array.row}});
  }
  const SlabSpec& spec = slab.spec();
  const GroupOptions& group = attachment.group;
  const bool same_step = group.reset_mode == ResetMode::kSameStep;
  const json object = {{"request", json::parse(attachment.request)},
                       {"descriptor", attachment.descriptor},
                       {"bytes", Slab::BytesNeeded(spec)},
                       {"slab",
                        {{"observation", SpecToJson(spec.observation, /*whole=*/false)},
                         {"state", SpecToJson(spec.state, /*whole=*/false)},
                         {"action", SpecToJson(spec.action, /*whole=*/false)},
                         {"policy", SpecToJson(spec.policy, /*whole=*/false)},
                         {"horizon", spec.horizon},
                         {"history", spec.history},
                         {"positions", slab.positions()}}},
                       {"arrays", arrays},
                       {"group",
                        {{"first_environment", group.columns.first_environment},
                         {"first_position", group.columns.first_position},
                         {"count", group.columns.count},
                         {"group", group.columns.group},
                         {"worker", group.columns.worker},
                         {"seed", group.seed},
                         {"reset_mode", same_step ? "same_step" : "between_slabs"},
                         {"clip_actions", group.clip_actions}}}};
  return object.dump();
}

HostAttachment HostAttachmentFromJson(const std::string& text) {
  return Parse("the attachment", text, [](const json& object) {
    const json& slab = object.at("slab");
    const json& group = object.at("group");
    HostAttachment attachment;
    attachment.request = object.at("request").dump();
    attachment.descriptor = object.at("descriptor").get<int>();
    attachment.slab = {.observation = SpecFromJson(slab.at("observation")),
                       .state = SpecFromJson(slab.at("state")),
                       .action = SpecFromJson(slab.at("action")),
                       .policy = SpecFromJson(slab.at("policy")),
                       .horizon = slab.at("horizon").get<int>(),
                       .history = slab.at("history").get<int>(),
                       .columns = ColumnLayout::Single(slab.at("positions").get<int>())};
    attachment.group.columns = {.group = group.at("group").get<int>(),
                                .worker = group.at("worker").get<int>(),
                                .first_environment = group.at("first_environment").get<int>(),
                                .first_position = group.at("first_position").get<int>(),
                                .count = group.at("count").get<int>()};
    attachment.group.seed = group.at("seed").get<std::uint64_t>();
    attachment.group.reset_mode = group.at("reset_mode").get<std::string>() == "same_step"
                                      ? ResetMode::kSameStep
                                      : ResetMode::kBetweenSlabs;
    attachment.group.clip_actions = group.at("clip_actions").get<bool>();
    return attachment;
  });
}

}  // namespace menger
