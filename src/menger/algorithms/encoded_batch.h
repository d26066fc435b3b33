#pragma once

#include <cstddef>
#include <span>

#include "menger/algorithms/observation_encoder.h"
#include "menger/networks/batch_memory.h"
#include "menger/networks/network.h"

namespace menger {

// A batch of encoded observations as a network takes it, in memory that its device reads by itself.
// Kept from batch to batch: it grows to the largest. Borrows the encoder; one thread at a time.
class EncodedBatch {
 public:
  explicit EncodedBatch(const ObservationEncoder& encoder) : encoder_(encoder) {}

  // Room for rows of `network`. What was in it may be lost.
  void Reserve(const Network& network, int rows);

  EncodedRows At(int row) const;  // Where that row begins.
  std::span<float> numbers() const;

  NetworkInput input() const;  // Of all rows, without steps and state.

 private:
  const ObservationEncoder& encoder_;
  int rows_ = 0;
  BatchMemory image_memory_;
  BatchMemory number_memory_;
  std::byte* images_ = nullptr;
  float* numbers_ = nullptr;
};

// The same for parts that lie anywhere. Those that the encoder does not have are ignored.
NetworkInput EncodedInput(const ObservationEncoder& encoder, const void* images,
                          const float* numbers, int rows);

}  // namespace menger
