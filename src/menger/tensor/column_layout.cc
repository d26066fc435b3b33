#include "menger/tensor/column_layout.h"

#include "menger/base/error.h"

namespace menger {

ColumnLayout::ColumnLayout(int columns, int groups, int workers, int padding, int first_environment)
    : columns_(columns), groups_(groups), workers_(workers) {
  if (groups < 1 || workers < 1 || padding < 1) {
    throw InvalidArgument(
        "a column layout needs groups, workers and padding of at least 1, not {}, {}, {}", groups,
        workers, padding);
  }
  const int blocks = groups * workers;
  if (columns < blocks) {
    throw InvalidArgument(
        "{} environments cannot be shared by {} groups x {} workers; give at least {}", columns,
        groups, workers, blocks);
  }
  blocks_.reserve(blocks);
  position_of_.reserve(columns);
  int column = 0;
  for (int index = 0; index < blocks; ++index) {
    const int count = columns / blocks + (index < columns % blocks ? 1 : 0);
    blocks_.push_back({.group = index / workers,
                       .worker = index % workers,
                       .first_environment = first_environment + column,
                       .first_column = column,
                       .first_position = positions_,
                       .count = count});
    for (int i = 0; i < count; ++i) position_of_.push_back(positions_ + i);
    column += count;
    positions_ += (count + padding - 1) / padding * padding;
  }
  environment_at_.assign(positions_, -1);
  for (int i = 0; i < columns; ++i) environment_at_[position_of_[i]] = first_environment + i;
}

PositionRange ColumnLayout::group(int group) const {
  const ColumnBlock& first = block(group, 0);
  const ColumnBlock& last = block(group, workers_ - 1);
  return {.first = first.first_position,
          .count = last.first_position + last.count - first.first_position};
}

}  // namespace menger
