#include "menger/training/progress_table.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/files.h"

namespace menger {
namespace {

std::string FirstLine(const std::string& path) {
  const std::string text = ReadFile(path);
  return text.substr(0, text.find('\n'));
}

}  // namespace

void ProgressTable::CheckColumns(const Row& row) {
  std::set<std::string> names;
  for (const auto& [name, value] : row) {
    if (name.empty() || name.find_first_of(",\"\n\r") != std::string::npos) {
      throw Internal(
          "'{}' cannot be a column of progress.csv: a name has letters, and neither "
          "commas, quotes nor line ends",
          name);
    }
    if (!names.insert(name).second) {
      throw Internal("two columns of progress.csv would be called '{}'; give one another name",
                     name);
    }
  }
}

ProgressTable::ProgressTable(const std::string& path) : file_(path) {
  if (file_.size() > 0) header_ = FirstLine(path);
}

void ProgressTable::Append(const Row& row) {
  std::vector<std::string> names;
  std::vector<std::string> cells;
  for (const auto& [name, value] : row) {
    names.push_back(name);
    cells.push_back(std::isnan(value) ? "" : fmt::format("{}", value));
  }
  const std::string header = fmt::format("{}", fmt::join(names, ","));
  if (header_.empty()) {
    header_ = header;
    file_.Append(header + "\n");
  }
  if (header != header_) {
    throw FailedPrecondition(
        "the columns of '{}' are '{}', but this run reports '{}'; a resumed "
        "run must have the options it was started with",
        file_.path(), header_, header);
  }
  file_.Append(fmt::format("{}\n", fmt::join(cells, ",")));
}

void ProgressTable::TruncateTo(std::uint64_t size) {
  file_.TruncateTo(size);
  if (size == 0) header_.clear();
}

}  // namespace menger
