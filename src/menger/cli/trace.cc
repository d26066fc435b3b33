#include "menger/cli/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/tensor/slab.h"

namespace menger {
namespace {

int ElementsOf(const Spec& spec) {
  std::int64_t elements = 0;
  for (const LeafSpec& leaf : spec.leaves()) elements += leaf.elements();
  return static_cast<int>(elements);
}

template <typename T>
void AppendElements(const std::byte* data, const LeafSpec& leaf, std::string& text) {
  const T* values = reinterpret_cast<const T*>(data);
  for (std::int64_t i = 0; i < leaf.elements(); ++i) {
    if constexpr (std::is_same_v<T, float>) {
      text += fmt::format(",{:.9g}", values[i]);
    } else if constexpr (std::is_same_v<T, double>) {
      text += fmt::format(",{:.17g}", values[i]);
    } else {
      text += fmt::format(",{}", values[i]);
    }
  }
}

void AppendLeaf(const std::byte* data, const LeafSpec& leaf, std::string& text) {
  switch (leaf.dtype) {
    case DataType::kUint8:
      return AppendElements<std::uint8_t>(data, leaf, text);
    case DataType::kInt32:
      return AppendElements<std::int32_t>(data, leaf, text);
    case DataType::kInt64:
      return AppendElements<std::int64_t>(data, leaf, text);
    case DataType::kFloat32:
      return AppendElements<float>(data, leaf, text);
    case DataType::kFloat64:
      return AppendElements<double>(data, leaf, text);
  }
}

template <typename T>
void StoreElements(const double* values, const LeafSpec& leaf, std::byte* data) {
  T* stored = reinterpret_cast<T*>(data);
  for (std::int64_t i = 0; i < leaf.elements(); ++i) stored[i] = static_cast<T>(values[i]);
}

void StoreLeaf(const double* values, const LeafSpec& leaf, std::byte* data) {
  switch (leaf.dtype) {
    case DataType::kUint8:
      return StoreElements<std::uint8_t>(values, leaf, data);
    case DataType::kInt32:
      return StoreElements<std::int32_t>(values, leaf, data);
    case DataType::kInt64:
      return StoreElements<std::int64_t>(values, leaf, data);
    case DataType::kFloat32:
      return StoreElements<float>(values, leaf, data);
    case DataType::kFloat64:
      return StoreElements<double>(values, leaf, data);
  }
}

std::string Header(const EnvironmentSpec& spec) {
  std::string header = "step";
  for (int i = 0; i < ElementsOf(spec.action); ++i) header += fmt::format(",action_{}", i);
  header += ",reward,terminated,truncated";
  for (int i = 0; i < ElementsOf(spec.observation); ++i) {
    header += fmt::format(",observation_{}", i);
  }
  return header + "\n";
}

// One environment's rows of text.
class Tracer {
 public:
  Tracer(const EnvironmentSpec& spec, const Slab& slab) : spec_(spec), slab_(slab) {}

  std::string ResetRow(std::int64_t step, int row) const {
    std::string text = fmt::format("{}{},0,0,0", step, std::string(ElementsOf(spec_.action), ','));
    AppendObservation(row, text);
    return text + "\n";
  }

  std::string StepRow(std::int64_t step) const {
    std::string text = fmt::format("{}", step);
    for (int leaf = 0; leaf < spec_.action.size(); ++leaf) {
      AppendLeaf(slab_.action<std::byte>(leaf, 0), spec_.action[leaf], text);
    }
    text += fmt::format(",{:.17g},{},{}", slab_.reward(0)[0], slab_.terminated(0)[0],
                        slab_.truncated(0)[0]);
    const int slot = slab_.final_index(0)[0];
    if (slot < 0) {
      AppendObservation(/*row=*/1, text);
    } else {
      for (int leaf = 0; leaf < spec_.observation.size(); ++leaf) {
        AppendLeaf(slab_.final_observation<std::byte>(leaf, slot), spec_.observation[leaf], text);
      }
    }
    return text + "\n";
  }

 private:
  void AppendObservation(int row, std::string& text) const {
    for (int leaf = 0; leaf < spec_.observation.size(); ++leaf) {
      AppendLeaf(slab_.observation<std::byte>(leaf, row), spec_.observation[leaf], text);
    }
  }

  const EnvironmentSpec& spec_;
  const Slab& slab_;
};

template <typename Number>
void ClipNumbers(const LeafSpec& leaf, std::byte* item) {
  auto* const numbers = reinterpret_cast<Number*>(item);
  for (std::int64_t i = 0; i < leaf.elements(); ++i) {
    const auto bound = [i](const std::vector<double>& bounds) {
      return static_cast<Number>(bounds[bounds.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
    };
    numbers[i] = std::clamp(numbers[i], bound(leaf.low), bound(leaf.high));
  }
}

// To what the environment does, so that the trace can be played back.
void ClipActions(const Spec& action, Slab& slab) {
  for (int leaf = 0; leaf < action.size(); ++leaf) {
    if (action[leaf].space != Space::kBox || action[leaf].low.empty()) continue;
    std::byte* const item = slab.action<std::byte>(leaf, /*row=*/0);
    if (action[leaf].dtype == DataType::kFloat32) ClipNumbers<float>(action[leaf], item);
    if (action[leaf].dtype == DataType::kFloat64) ClipNumbers<double>(action[leaf], item);
  }
}

std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

std::vector<std::size_t> ActionColumns(const std::vector<std::string>& header, int elements,
                                       const std::string& path) {
  std::vector<std::size_t> columns;
  for (int i = 0; i <= elements; ++i) {  // One more, which must be missing.
    const std::string name = fmt::format("action_{}", i);
    const auto found = std::find(header.begin(), header.end(), name);
    if ((found == header.end()) != (i == elements)) {
      throw InvalidArgument(
          "{}:1: there is {} column '{}'; this environment's actions have {} "
          "element{}, in columns action_0, ...",
          path, i == elements ? "a" : "no", name, elements, elements == 1 ? "" : "s");
    }
    if (i == elements) break;
    columns.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  return columns;
}

double NumberOf(const std::string& cell, const std::string& place) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    throw InvalidArgument("{}: '{}' is not a number", place, cell);
  }
  return value;
}

}  // namespace

std::string RecordTrace(const TraceOptions& options, const EnvironmentEntry& environment,
                        Policy& policy) {
  const EnvironmentSpec& spec = environment.spec;
  Slab slab = MakeSlab({.observation = spec.observation,
                        .state = policy.spec().state,
                        .action = spec.action,
                        .policy = policy.spec().columns,
                        .horizon = 1,
                        .history = options.history,
                        .columns = ColumnLayout::Single(1)},
                       environment);
  const auto group = environment.make_group({.columns = slab.columns().block(0, 0),
                                             .seed = options.seed,
                                             .clip_actions = options.clip_actions});
  const Tracer tracer(spec, slab);
  policy.Refresh();
  group->Reset(slab, /*row=*/0);
  std::string text = Header(spec) + tracer.ResetRow(/*step=*/0, /*row=*/0);
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    policy.Act(slab, /*row=*/0, {.first = 0, .count = 1});
    if (options.clip_actions) ClipActions(spec.action, slab);
    group->Step(slab, /*row=*/0);
    text += tracer.StepRow(step);
    const bool starts_anew = slab.episode_end(0)[0] != 0;
    if (starts_anew && step < options.steps) text += tracer.ResetRow(step, /*row=*/1);
    slab.Carry(slab);
  }
  return text;
}

RecordedActions::RecordedActions(const std::string& path, const Spec& action)
    : action_(action), elements_(ElementsOf(action)) {
  std::istringstream file(ReadFile(path));
  std::string line;
  std::getline(file, line);
  const std::vector<std::size_t> columns = ActionColumns(CellsOf(line), elements_, path);
  for (int number = 2; std::getline(file, line); ++number) {
    if (!line.empty()) ReadRow(CellsOf(line), columns, fmt::format("{}:{}", path, number));
  }
}

void RecordedActions::ReadRow(const std::vector<std::string>& cells,
                              const std::vector<std::size_t>& columns, const std::string& place) {
  std::vector<double> row;
  for (const std::size_t column : columns) {
    if (column >= cells.size() || cells[column].empty()) continue;
    row.push_back(NumberOf(cells[column], place));
  }
  if (row.empty()) return;  // A reset.
  if (row.size() != columns.size()) {
    throw InvalidArgument(
        "{}: {} of {} action cells are filled; fill all of them, or none for a "
        "reset",
        place, row.size(), columns.size());
  }
  std::size_t element = 0;
  for (const LeafSpec& leaf : action_.leaves()) {
    const bool integers = leaf.dtype != DataType::kFloat32 && leaf.dtype != DataType::kFloat64;
    for (std::int64_t i = 0; i < leaf.elements(); ++i, ++element) {
      if (!integers || std::trunc(row[element]) == row[element]) continue;
      throw InvalidArgument("{}: action_{} is {}; this environment takes whole numbers", place,
                            element, row[element]);
    }
  }
  actions_.insert(actions_.end(), row.begin(), row.end());
}

std::int64_t RecordedActions::steps() const {
  return static_cast<std::int64_t>(actions_.size()) / elements_;
}

void RecordedActions::Act(std::span<const ActSlice> slices) {
  for (const ActSlice& slice : slices) {
    if (next_ >= steps()) {
      throw FailedPrecondition("all {} recorded actions have been played", steps());
    }
    const double* values = actions_.data() + next_++ * elements_;
    for (int leaf = 0; leaf < action_.size(); ++leaf) {
      StoreLeaf(values, action_[leaf],
                slice.slab->action<std::byte>(leaf, slice.row, slice.positions.first));
      values += action_[leaf].elements();
    }
  }
}

}  // namespace menger
