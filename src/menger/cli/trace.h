#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "menger/collectors/policy.h"
#include "menger/environments/environment.h"

namespace menger {

// What an environment did, step by step, as a CSV that can be compared with another
// implementation's.
//
// Columns: step, action_0.., reward, terminated, truncated, observation_0.. after the step; leaves
// of several elements are flattened in order. Floats have 9 digits and doubles 17, so that reading
// them back gives the same bits. Row 0 is the reset: its action cells are empty, its reward 0.
// When an episode ends, its row holds the final observation, and a further reset row with the same
// step number holds the first observation of the next episode (as reset() without a seed gives it).
struct TraceOptions {
  std::uint64_t seed = 0;
  std::int64_t steps = 1000;
  bool clip_actions = false;  // See GroupOptions.
  int history = 0;            // Frames of history that the policy needs.
};

// Steps one environment with the policy and returns the CSV's text.
std::string RecordTrace(const TraceOptions& options, const EnvironmentEntry& environment,
                        Policy& policy);

// Plays the actions of a CSV back: its columns action_0.., one row a step; rows whose action cells
// are empty (resets of a trace) are skipped, other columns are not looked at. So a trace can be
// played back as it is.
class RecordedActions : public Policy {
 public:
  // Throws InvalidArgument, naming file and line, if the columns do not fit the action space or a
  // cell is not a number.
  RecordedActions(const std::string& path, const Spec& action);

  std::int64_t steps() const;  // Actions that there are.

  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}
  void Act(std::span<const ActSlice> slices) override;
  using Policy::Act;

 private:
  void ReadRow(const std::vector<std::string>& cells, const std::vector<std::size_t>& columns,
               const std::string& place);

  const PolicySpec spec_;
  const Spec action_;
  int elements_ = 0;             // Of all action leaves together.
  std::vector<double> actions_;  // Exact for every integer and float that an action may be.
  std::int64_t next_ = 0;
};

}  // namespace menger
