#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace menger {

// What a run folder says of itself, for tables.
struct RunRow {
  std::string path;
  std::string environment;
  std::string algorithm;
  // "running": some process is at it. Else how it ended: "completed", "solved",
  // "interrupted"; "unfinished" where it did not get to say so.
  std::string state;
  std::int64_t steps = 0;  // Done, as last reported,
  std::int64_t steps_planned = 0;
  std::optional<double> best_return;  // Of the evaluations.
  std::optional<double> last_return;  // Mean of recent training episodes, as last reported.
  std::vector<std::string> changed;   // "ppo.clip=0.1": what options of the command line set.
};

// All runs in `folder` and in the folders below it (not in those of runs), sorted by path with
// numbers by their size; or the one that it is. Unreadable ones are logged as warnings and left
// out. Throws NotFound if there is no such folder.
std::vector<RunRow> RunsIn(const std::string& folder);

// What experiment.toml says about one run. Throws InvalidArgument if it is not what a run leaves.
RunRow DescribeRun(const std::string& path);

}  // namespace menger
