#pragma once

#include <span>
#include <vector>

namespace menger {

// A run of neighbouring columns of a slab that one worker steps on behalf of one group.
struct ColumnBlock {
  int group = 0;
  int worker = 0;
  int first_environment = 0;  // The block's environments are first_environment .. + count - 1.
  int first_column = 0;       // They are columns first_column .. + count - 1 of the layout.
  int first_position = 0;     // They stand at positions first_position .. + count - 1.
  int count = 0;
};

// A run of positions, padding included.
struct PositionRange {
  int first = 0;
  int count = 0;
};

// Where each environment's column stands in a slab.
//
// Columns are numbered 0 .. columns-1 and stand in that order; column i is environment
// `first_environment` + i of the run, which may have others elsewhere. They are cut group-major
// into one block for each (group, worker): group 0 worker 0, group 0 worker 1, ..., group 1 worker
// 0,
// ... Each block starts at a multiple of `padding` positions, so that two workers never write into
// one cache line and a whole group is still one contiguous run. The positions between blocks are
// padding: no environment, `valid` always 0. Immutable value.
class ColumnLayout {
 public:
  // Blocks differ in size by one at most. Throws InvalidArgument unless every block gets at least
  // one environment. A padding of 1 leaves no gaps; 16 keeps every float32 scalar of a block in
  // cache lines of its own.
  ColumnLayout(int columns, int groups, int workers, int padding, int first_environment = 0);

  static ColumnLayout Single(int columns) { return ColumnLayout(columns, 1, 1, 1); }

  int columns() const { return columns_; }      // Environments.
  int positions() const { return positions_; }  // Columns in memory, padding included.
  int groups() const { return groups_; }
  int workers() const { return workers_; }

  const ColumnBlock& block(int group, int worker) const {
    return blocks_[group * workers_ + worker];
  }
  std::span<const ColumnBlock> blocks() const { return blocks_; }
  PositionRange group(int group) const;  // From the group's first environment to its last.

  int PositionOf(int column) const { return position_of_[column]; }
  // The environment of the run at each position of a range; -1: padding.
  std::span<const int> EnvironmentsAt(PositionRange range) const {
    return std::span<const int>(environment_at_).subspan(range.first, range.count);
  }
  int EnvironmentAt(int position) const { return environment_at_[position]; }  // -1: padding.

 private:
  int columns_;
  int groups_;
  int workers_;
  int positions_ = 0;
  std::vector<ColumnBlock> blocks_;  // Group-major.
  std::vector<int> position_of_;     // By column.
  std::vector<int> environment_at_;  // By position.
};

}  // namespace menger
