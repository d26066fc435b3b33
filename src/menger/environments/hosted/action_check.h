#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "menger/environments/environment.h"
#include "menger/tensor/slab.h"

namespace menger {

// Throws InvalidArgument, naming environment, step, element and value, for the first action of the
// block's columns in `row` that is not one of the discrete ones or not a finite number. `skip[i]`
// != 0: column i's action means nothing. Actions have one leaf, int64 or float32.
void CheckActions(const EnvironmentSpec& spec, const Slab& slab, int row,
                  const ColumnBlock& columns, std::span<const std::uint8_t> skip);

}  // namespace menger
