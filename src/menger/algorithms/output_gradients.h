#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "menger/networks/network.h"

namespace menger {

// Room for the gradients of a network's outputs. Kept from batch to batch; one thread.
class OutputGradients {
 public:
  // One matrix an output, of its shape; what they hold is undefined.
  std::span<const Matrix> Like(std::span<const Matrix> outputs) {
    std::size_t floats = 0;
    for (const Matrix& output : outputs) {
      floats += static_cast<std::size_t>(output.rows) * output.columns;
    }
    storage_.resize(floats);
    matrices_.clear();
    float* next = storage_.data();
    for (const auto& [data, rows, columns, stride] : outputs) {
      matrices_.push_back({.data = next, .rows = rows, .columns = columns, .stride = columns});
      next += static_cast<std::size_t>(rows) * columns;
    }
    return matrices_;
  }

 private:
  std::vector<float> storage_;
  std::vector<Matrix> matrices_;
};

}  // namespace menger
