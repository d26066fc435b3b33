#include "menger/environments/hosted/action_check.h"

#include <cmath>

#include "menger/base/error.h"

namespace menger {
namespace {

std::string Place(const EnvironmentSpec& spec, const Slab& slab, int row,
                  const ColumnBlock& columns, int i) {
  return fmt::format("{} environment {}, step {}", spec.name, columns.first_environment + i,
                     slab.first_step() + row);
}

}  // namespace

void CheckActions(const EnvironmentSpec& spec, const Slab& slab, int row,
                  const ColumnBlock& columns, std::span<const std::uint8_t> skip) {
  const LeafSpec& leaf = spec.action[0];
  const auto elements = static_cast<int>(leaf.elements());
  for (int i = 0; i < columns.count; ++i) {
    if (skip[i] != 0) continue;
    const int position = columns.first_position + i;
    for (int k = 0; k < elements; ++k) {
      if (leaf.space == Space::kBox) {
        const float value = slab.action<float>(0, row, position)[k];
        if (std::isfinite(value)) continue;
        throw InvalidArgument("{}: action {} is {}; it must be a finite number",
                              Place(spec, slab, row, columns, i), k, value);
      }
      const std::int64_t value = slab.action<std::int64_t>(0, row, position)[k];
      const std::int64_t count = leaf.counts[leaf.counts.size() == 1 ? 0 : k];
      if (value >= 0 && value < count) continue;
      throw InvalidArgument("{}: action {} is not one of 0..{}", Place(spec, slab, row, columns, i),
                            value, count - 1);
    }
  }
}

}  // namespace menger
