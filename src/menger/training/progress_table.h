#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "menger/training/append_file.h"

namespace menger {

// progress.csv: one row each time the run reports, the same columns in each, named in the first
// line. A number that is not known yet is an empty cell. One thread at a time.
class ProgressTable {
 public:
  using Row = std::vector<std::pair<std::string, double>>;

  // Throws Internal, naming the column, if two have one name, or if one's is empty or has what
  // would end it: a comma, a quote, a line's end.
  static void CheckColumns(const Row& row);

  // Goes on with the file that is there, or starts a new one with its first row.
  explicit ProgressTable(const std::string& path);

  // Throws FailedPrecondition, naming the column, if the columns are not those of the first row.
  void Append(const Row& row);

  void TruncateTo(std::uint64_t size);  // See AppendFile.
  void Sync() { file_.Sync(); }
  std::uint64_t size() const { return file_.size(); }

 private:
  AppendFile file_;
  std::string header_;  // Empty until known.
};

}  // namespace menger
