#include "menger/training/run_table.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/base/log.h"
#include "menger/training/run_folder.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgress = "progress.csv";
constexpr std::string_view kOrigin = "  # from --";  // As Experiment::ToToml writes it.

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<double> ToNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.empty()) return std::nullopt;
  return number;
}

// Calls function(cell) for each number of a column, from the first row to the last.
template <typename Function>
void ForColumn(const std::vector<std::string_view>& lines, std::string_view name,
               Function function) {
  const auto names = Split(lines[0], ',');
  const auto column = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  for (std::size_t row = 1; row < lines.size(); ++row) {
    const auto cells = Split(lines[row], ',');
    if (column >= cells.size()) continue;  // No such column.
    if (const auto number = ToNumber(cells[column])) function(*number);
  }
}

void ReadProgress(const std::string& text, RunRow& row) {
  // A row without its end is still being written.
  const std::size_t end = text.rfind('\n');
  if (end == std::string::npos) return;
  const auto lines = Split(std::string_view(text).substr(0, end), '\n');
  ForColumn(lines, "steps", [&](double steps) { row.steps = static_cast<std::int64_t>(steps); });
  ForColumn(lines, "episode_return_mean", [&](double mean) { row.last_return = mean; });
  ForColumn(lines, "evaluation_return_mean",
            [&](double mean) { row.best_return = std::max(mean, row.best_return.value_or(mean)); });
}

void ReadSummary(const std::string& text, RunRow& row) {
  const auto summary = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object()) return;
  row.state = summary.value("status", row.state);
  row.steps = std::max(row.steps, summary.value("steps", std::int64_t{0}));
  const auto best = summary.find("best");
  if (best == summary.end() || !best->is_object()) return;
  const double mean = best->value("return_mean", -std::numeric_limits<double>::infinity());
  row.best_return = std::max(mean, row.best_return.value_or(mean));
}

std::string Unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

// Line by line, because the comments count: they say where a value comes from.
void ReadExperiment(const std::string& text, RunRow& row) {
  std::string section;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.starts_with('[')) {
      section = fmt::format("{}.", line.substr(1, line.find(']') - 1));
      continue;
    }
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('#') || equals == std::string_view::npos) continue;
    const std::string key = section + std::string(line.substr(0, equals));
    const std::string_view rest = line.substr(equals + 3);
    const std::string value = Unquoted(rest.substr(0, rest.rfind("  # from ")));
    if (key == "environment") row.environment = value;
    if (key == "algorithm") row.algorithm = value;
    if (key == "steps") row.steps_planned = static_cast<std::int64_t>(ToNumber(value).value_or(0));
    if (rest.rfind(kOrigin) == std::string_view::npos) continue;
    row.changed.push_back(fmt::format("{}={}", key, value));
  }
}

std::string TextOf(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) ? ReadFile(path.string()) : "";
}

// "cartpole-2" before "cartpole-10".
bool ComesBefore(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto number = [&](std::string_view text, std::size_t& at) {
        double value = 0;
        for (; at < text.size() && is_digit(text[at]); ++at) value = value * 10 + (text[at] - '0');
        return value;
      };
      const double one = number(a, i);
      const double other = number(b, j);
      if (one != other) return one < other;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

void AddRuns(const fs::path& folder, std::vector<std::string>& found) {
  std::error_code error;
  if (fs::exists(folder / "experiment.toml", error)) {
    found.push_back(folder.string());
    return;
  }
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code unknown;
    if (entry.is_directory(unknown) && !entry.is_symlink(unknown)) AddRuns(entry.path(), found);
  }
}

}  // namespace

RunRow DescribeRun(const std::string& path) {
  const fs::path folder(path);
  RunRow row{.path = path, .state = "unfinished"};
  ReadExperiment(ReadFile((folder / "experiment.toml").string()), row);
  if (row.environment.empty() || row.algorithm.empty()) {
    throw InvalidArgument("'{}/experiment.toml' names no environment or no algorithm", path);
  }
  ReadProgress(TextOf(folder / kProgress), row);
  ReadSummary(TextOf(folder / "summary.json"), row);
  if (IsTrainedNow(path)) row.state = "running";
  return row;
}

std::vector<RunRow> RunsIn(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw NotFound("there is no folder '{}'; `menger train` makes 'runs' where it is started",
                   folder);
  }
  std::vector<std::string> paths;
  AddRuns(fs::path(folder).lexically_normal(), paths);
  std::ranges::sort(paths, ComesBefore);
  std::vector<RunRow> rows;
  for (const std::string& path : paths) {
    try {
      rows.push_back(DescribeRun(path));
    } catch (const Error& problem) {
      LogWarning("left out: {}", problem.what());
    }
  }
  return rows;
}

}  // namespace menger
