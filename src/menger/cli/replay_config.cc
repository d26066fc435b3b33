#include "menger/cli/replay_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "menger/base/error.h"
#include "menger/training/learning/replay_table.h"
#include "menger/training/toml_values.h"

namespace menger {
namespace {

constexpr double kNumbersMax = 1e9;  // Of a leaf of a step.
constexpr std::string_view kInFront = ", zeros in front";

const std::vector<std::string> kSelectors = {"uniform",  "fifo",     "lifo",
                                             "min_heap", "max_heap", "prioritised"};
const std::vector<std::string> kLimiters = {"min_size", "queue", "stack", "sample_to_insert_ratio"};
const std::vector<std::string> kDurabilities = {"none", "checkpoint", "journal"};

std::int64_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) - names.begin();
}

SelectorKind KindOf(const std::string& name) {
  return static_cast<SelectorKind>(IndexOf(kSelectors, name));
}

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

// What comes before and after the last ": ".
std::pair<std::string, std::string> NameAndRest(const std::string& line) {
  const std::size_t colon = line.rfind(": ");
  if (colon == std::string::npos || colon == 0) {
    throw InvalidArgument(
        "'{}' has no name: it must be as \"reward: float32 ()\" or \"reward: "
        "reward x 3\"",
        line);
  }
  return {line.substr(0, colon), line.substr(colon + 2)};
}

std::optional<std::int64_t> NumberIn(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

// "(84, 84)", "(4,)", "()".
Shape ShapeIn(std::string_view text, const std::string& line) {
  const auto fail = [&]() -> Error {
    return InvalidArgument("'{}': '{}' is no shape; it must be as (), (4,) or (84, 84)", line,
                           text);
  };
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') throw fail();
  Shape shape;
  double numbers = 1;
  std::string_view rest = text.substr(1, text.size() - 2);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<std::int64_t> size = NumberIn(rest.substr(0, comma));
    if (!size || *size < 1) throw fail();
    numbers *= static_cast<double>(*size);
    if (numbers > kNumbersMax) {
      throw InvalidArgument("'{}': a step of shape {} has too many numbers: at most {:.0f}", line,
                            text, kNumbersMax);
    }
    shape.push_back(*size);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return shape;
}

DataType TypeIn(const std::string& name, const std::string& line) {
  constexpr std::array kTypes = {DataType::kUint8, DataType::kInt32, DataType::kInt64,
                                 DataType::kFloat32, DataType::kFloat64};
  std::vector<std::string> names;
  for (const DataType type : kTypes) {
    if (NameOf(type) == name) return type;
    names.emplace_back(NameOf(type));
  }
  throw InvalidArgument("'{}': there is no type '{}'{}; there are {}", line, name,
                        DidYouMean(name, names), fmt::join(names, ", "));
}

LeafSpec LeafIn(const std::string& line) {
  const auto [name, rest] = NameAndRest(line);
  const std::size_t space = std::min(rest.find(' '), rest.size());
  return {.name = name,
          .dtype = TypeIn(rest.substr(0, space), line),
          .shape = ShapeIn(std::string_view(rest).substr(std::min(space + 1, rest.size())), line)};
}

std::string LineOf(const LeafSpec& leaf) {
  return fmt::format("{}: {} {}", leaf.name, NameOf(leaf.dtype), ToString(leaf.shape));
}

ItemColumn ColumnIn(const std::string& line) {
  auto [name, rest] = NameAndRest(line);
  ItemColumn column{.name = name};
  if (rest.ends_with(kInFront)) {
    column.padding = Padding::kFront;
    rest.resize(rest.size() - kInFront.size());
  }
  const std::size_t times = rest.rfind(" x ");
  const std::optional<std::int64_t> rows = times == std::string::npos
                                               ? std::nullopt
                                               : NumberIn(std::string_view(rest).substr(times + 3));
  if (!rows || *rows < 1 || *rows > kChunkRowsMax) {
    throw InvalidArgument(
        "'{}' is no column; it must be as \"reward: reward x 3\", of 1 to {} rows", line,
        kChunkRowsMax);
  }
  column.leaf = rest.substr(0, times);
  column.rows = static_cast<int>(*rows);
  return column;
}

std::string LineOf(const ItemColumn& column) {
  return fmt::format("{}: {} x {}{}", column.name, column.leaf, column.rows,
                     column.padding == Padding::kFront ? kInFront : "");
}

void SetOne(Options& options, const std::string& name, const toml::node& node,
            const std::string& origin) {
  const std::string place = PlaceOf(origin, node);
  WithPlace(place, [&] { options.Set(name, ToValue(node, place, name)); });
}

void SetAll(Options& options, const toml::table& table, const std::string& origin) {
  for (const auto& [key, node] : table) SetOne(options, std::string(key.str()), node, origin);
}

std::string LinesOf(const Options& options) {
  std::string text;
  for (const OptionEntry& entry : options.Entries()) {
    const std::string unit = entry.unit.empty() ? "" : fmt::format(" ({})", entry.unit);
    const std::string allowed = entry.allowed.empty() ? "" : "; " + entry.allowed;
    text += fmt::format("# {}{}{}\n{} = {}\n", entry.consequence, unit, allowed, entry.name,
                        TomlOf(entry.value));
  }
  return text;
}

}  // namespace

// ---- A table

void ServedTableOptions::Declare(Options& options) {
  options.Add("name", &name, {.consequence = "by which clients find it"});
  options.Add("seed", &seed,
              {.minimum = 0,
               .maximum = 1e15,
               .consequence = "draws are those of a run of this seed with replay of its own"});
  options.Add("steps", &steps,
              {.consequence = "the leaves of a step, as \"observation: uint8 (84, 84)\""});
  options.Add("columns", &columns,
              {.consequence = "what an item shows of them, as \"reward: reward x 3\" or "
                              "\"observation: observation x 4, zeros in front\""});
  options.Add("items_max", &items_max,
              {.minimum = 1, .maximum = 4e9, .consequence = "items that are kept"});
  options.Add("bytes_max", &bytes_max,
              {.minimum = 1, .unit = "bytes", .consequence = "memory that their steps may take"});
  options.Add("times_sampled_max", &times_sampled_max,
              {.minimum = 0,
               .maximum = 2e9,
               .consequence = "an item goes when it was drawn so often; 0: never for that"});
  options.Add("sampler", &sampler, {.choices = kSelectors, .consequence = "which items are drawn"});
  options.Add("remover", &remover,
              {.choices = kSelectors, .consequence = "which item goes when there is no room"});
  options.Add(
      "priority_exponent", &priority_exponent,
      {.minimum = 0, .maximum = 10, .consequence = "prioritised: how much priorities count"});
  options.Add("stratified", &stratified,
              {.consequence = "prioritised: the draws of a call are spread over the priorities"});
  options.Add("limiter", &limiter,
              {.choices = kLimiters,
               .consequence = "how fast it may be drawn from against how fast it is filled"});
  options.Add("min_size", &min_size,
              {.minimum = 1,
               .maximum = 4e9,
               .consequence = "items before the first draw (min_size, sample_to_insert_ratio); the "
                              "most items of a queue or a stack"});
  options.Add("samples_per_insert", &samples_per_insert,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "sample_to_insert_ratio: draws of each item on average"});
  options.Add("error_buffer", &error_buffer,
              {.minimum = 0,
               .consequence = "sample_to_insert_ratio: draws that there may be more or fewer"});
}

TableOptions ServedTableOptions::ForTable() const {
  TableOptions table{
      .name = name,
      .sampler = {.kind = KindOf(sampler), .exponent = priority_exponent, .stratified = stratified},
      .remover = {.kind = KindOf(remover), .exponent = priority_exponent},
      .items_max = items_max,
      .bytes_max = static_cast<std::size_t>(bytes_max),
      .times_sampled_max = static_cast<int>(times_sampled_max),
      .seed = ReplayDrawSeed(static_cast<std::uint64_t>(seed))};
  try {
    std::vector<LeafSpec> leaves;
    for (const std::string& line : steps) leaves.push_back(LeafIn(line));
    table.items.steps = Spec(std::move(leaves));
    for (const std::string& line : columns) table.items.columns.push_back(ColumnIn(line));
    if ((limiter == "queue" || limiter == "stack") && times_sampled_max != 1) {
      throw InvalidArgument(
          "limiter = \"{}\" gives each item once, so times_sampled_max must be 1; it is {}",
          limiter, times_sampled_max);
    }
    if (limiter == "min_size") table.rate_limiter = RateLimiterOptions::MinSize(min_size);
    if (limiter == "queue") table.rate_limiter = RateLimiterOptions::Queue(min_size);
    if (limiter == "stack") table.rate_limiter = RateLimiterOptions::Stack(min_size);
    if (limiter == "sample_to_insert_ratio") {
      table.rate_limiter =
          RateLimiterOptions::SampleToInsertRatio(samples_per_insert, min_size, error_buffer);
    }
  } catch (const Error& error) {
    throw WithContext(error, fmt::format("table '{}'", name));
  }
  table.Check();
  return table;
}

ServedTableOptions ServedTableOptions::OfRecipe(const TableOptions& table, std::int64_t seed) {
  ServedTableOptions options{.name = table.name,
                             .seed = seed,
                             .items_max = table.items_max,
                             .bytes_max = static_cast<std::int64_t>(table.bytes_max),
                             .times_sampled_max = table.times_sampled_max,
                             .sampler = kSelectors[static_cast<std::size_t>(table.sampler.kind)],
                             .remover = kSelectors[static_cast<std::size_t>(table.remover.kind)],
                             .priority_exponent = table.sampler.exponent,
                             .stratified = table.sampler.stratified,
                             .min_size = table.rate_limiter.min_size};
  for (const LeafSpec& leaf : table.items.steps.leaves()) options.steps.push_back(LineOf(leaf));
  for (const ItemColumn& column : table.items.columns) options.columns.push_back(LineOf(column));
  return options;
}

// ---- The file

void ReplayConfig::DeclareTop(Options& options) {
  options.Add("socket", &socket,
              {.consequence = "path of the socket at which clients find it; relative to the folder "
                              "that it is started in"});
  options.Add(
      "listen", &listen,
      {.consequence = "where it also listens for TCP, as 127.0.0.1:7000: any process of this "
                      "machine may connect there; empty: nowhere"});
  options.Add("bytes_max", &bytes_max,
              {.minimum = 0,
               .unit = "bytes",
               .consequence = "memory for the steps of all tables, readers and writers; 0: as much "
                              "as the tables need, and an eighth"});
  options.Add("connections_max", &connections_max,
              {.minimum = 1, .maximum = 100'000, .consequence = "clients at once"});
  options.Add("drain", &drain,
              {.minimum = 0,
               .maximum = 3600,
               .unit = "seconds",
               .consequence = "how long calls may go on after SIGTERM, before they are cut off"});
}

void ReplayConfig::DeclareDurability(Options& options) {
  options.Add("kind", &durability,
              {.choices = kDurabilities,
               .consequence = "what outlives the server: nothing, what the last checkpoint had, or "
                              "all but the inserts of the last loss_max"});
  options.Add("folder", &folder, {.consequence = "where it is kept"});
  options.Add(
      "checkpoint_every", &checkpoint_every,
      {.minimum = 1, .maximum = 1e7, .unit = "seconds", .consequence = "between checkpoints"});
  options.Add("journal_bytes_max", &journal_bytes_max,
              {.minimum = 1 << 20,
               .unit = "bytes",
               .consequence = "journal: a checkpoint is made once it has so much"});
  options.Add("loss_max", &loss_max,
              {.minimum = 0.01,
               .maximum = 3600,
               .unit = "seconds",
               .consequence = "journal: inserts of so long may be lost with the power"});
}

ReplayConfig ReplayConfig::Read(std::string_view toml, const std::string& origin) {
  ReplayConfig config;
  const toml::table file = ParseToml(toml, origin);
  Options top;
  config.DeclareTop(top);
  for (const auto& [key, node] : file) {
    const std::string name(key.str());
    if (name == "durability" && node.is_table()) {
      Options options(name);
      config.DeclareDurability(options);
      SetAll(options, *node.as_table(), origin);
    } else if (name == "table" && node.is_array_of_tables()) {
      for (const toml::node& each : *node.as_array()) {
        ServedTableOptions& table = config.tables.emplace_back();
        Options options(name);
        table.Declare(options);
        SetAll(options, *each.as_table(), origin);
        WithPlace(PlaceOf(origin, each), [&] { (void)table.ForTable(); });
      }
    } else if (node.is_table() || node.is_array_of_tables()) {
      throw InvalidArgument(
          "{}: there is no section '{}'; there are [durability] and, for each table, [[table]]",
          PlaceOf(origin, node), name);
    } else {
      SetOne(top, name, node, origin);
    }
  }
  if (config.tables.empty()) {
    throw InvalidArgument(
        "{}: a replay server has a [[table]] at least; `menger replay config "
        "RECIPE` prints one",
        origin);
  }
  return config;
}

std::string ReplayConfig::ToToml() const {
  ReplayConfig copy = *this;
  Options top;
  copy.DeclareTop(top);
  Options kept("durability");
  copy.DeclareDurability(kept);
  std::string text = LinesOf(top) + "\n[durability]\n" + LinesOf(kept);
  for (ServedTableOptions& table : copy.tables) {
    Options options("table");
    table.Declare(options);
    text += "\n[[table]]\n" + LinesOf(options);
  }
  return text;
}

ReplayStoreOptions ReplayConfig::ForStore() const {
  ReplayStoreOptions store{.bytes_max = static_cast<std::size_t>(bytes_max), .shared = true};
  for (const ServedTableOptions& table : tables) store.tables.push_back(table.ForTable());
  return store;
}

DurabilityOptions ReplayConfig::ForDurability() const {
  return {.kind = static_cast<Durability>(IndexOf(kDurabilities, durability)),
          .folder = folder,
          .checkpoint_every = Seconds(checkpoint_every),
          .journal_bytes_max = static_cast<std::uint64_t>(journal_bytes_max),
          .loss_max = Seconds(loss_max)};
}

ReplayServerOptions ReplayConfig::ForServer() const {
  return {.socket = socket, .listen = listen, .connections_max = static_cast<int>(connections_max)};
}

}  // namespace menger
