#include "menger/algorithms/encoded_batch.h"

namespace menger {

void EncodedBatch::Reserve(const Network& network, int rows) {
  rows_ = rows;
  const auto count = static_cast<std::size_t>(rows);
  images_ = nullptr;
  if (encoder_.has_image()) {
    images_ = image_memory_.Reserve(network, count * encoder_.image_bytes());
  }
  numbers_ = nullptr;
  if (encoder_.numbers() > 0) {
    numbers_ = reinterpret_cast<float*>(
        number_memory_.Reserve(network, count * encoder_.numbers() * sizeof(float)));
  }
}

EncodedRows EncodedBatch::At(int row) const {
  EncodedRows rows;
  if (images_ != nullptr) rows.image = images_ + row * encoder_.image_bytes();
  if (numbers_ != nullptr) {
    rows.numbers = numbers_ + static_cast<std::ptrdiff_t>(row) * encoder_.numbers();
  }
  return rows;
}

std::span<float> EncodedBatch::numbers() const {
  return {numbers_, static_cast<std::size_t>(rows_) * encoder_.numbers()};
}

NetworkInput EncodedBatch::input() const {
  return EncodedInput(encoder_, images_, numbers_, rows_);
}

NetworkInput EncodedInput(const ObservationEncoder& encoder, const void* images,
                          const float* numbers, int rows) {
  if (!encoder.has_image()) return {.observations = numbers, .rows = rows};
  return {.observations = images,
          .vector = encoder.vector_elements() > 0 ? numbers : nullptr,
          .rows = rows};
}

}  // namespace menger
