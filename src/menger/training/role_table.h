#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "menger/training/append_file.h"
#include "menger/training/pipeline_roles.h"

namespace menger {

// roles.csv of a run's folder: for each row of progress.csv a line a role, of the time since the
// row before. One thread.
class RoleTable {
 public:
  explicit RoleTable(const std::string& path);

  // Drops the lines of later steps: for a run that goes on from a checkpoint, after so many
  // seconds.
  void DropAfter(std::int64_t steps, double seconds);
  void Write(std::int64_t steps, double seconds, const PipelineNews& news);

 private:
  struct Seen {
    double seconds = 0;  // When its last line was written.
    RoleStatus status;
  };

  void WriteLine(std::int64_t steps, double seconds, const RoleStatus& status);

  AppendFile file_;
  double began_ = 0;                  // Seconds.
  std::map<std::string, Seen> seen_;  // By role.
};

// What shares of the time roles have worked lately, for who watches: "busy: learner 97%, collectors
// 12%". One thread.
class BusyText {
 public:
  // Of a later time; the same text as before until a second has passed.
  const std::string& Of(double seconds, const PipelineNews& news);

 private:
  double seconds_ = 0;
  double learner_ = 0, collectors_ = 0, inference_ = 0;  // Seconds that they had worked by then.
  std::string text_;
};

}  // namespace menger
