#pragma once

#include <cstdint>
#include <string>

#include "menger/base/options.h"

namespace menger {

// Options of section [replay], of algorithms that learn from batches. Defaults are those of Mnih et
// al. 2015; the exponent of prioritised draws is Schaul et al. 2016's.
struct ReplayOptions {
  std::int64_t capacity = 1'000'000;
  std::int64_t bytes_max = 0;
  std::int64_t min_size = 50'000;
  std::int64_t batch_size = 32;
  double training_intensity = 8;
  std::string sampler = "uniform";  // uniform or prioritised.
  double priority_exponent = 0.6;
  std::string initial_priority = "highest";  // highest or error.
  bool stratified = false;
  std::string prefetch = "auto";  // auto, on or off.
  std::int64_t chunk_steps = 64;
  std::string compression = "none";  // none or automatic.
  std::string address;               // Empty: replay is in this process.
  std::string table = "replay";      // These two: at the address.
  double patience = 60;              // Seconds.

  void Declare(Options& options);

  // Throws InvalidArgument if min_size is beyond the capacity, or items without priorities are to
  // begin with one.
  void Check() const;

 private:
  void DeclareDraws(Options& options);
  void DeclareMemory(Options& options);
};

}  // namespace menger
