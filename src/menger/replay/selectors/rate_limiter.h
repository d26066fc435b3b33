#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace menger {

// How fast a table may be sampled against how fast it is filled. With
//   d = inserts * samples_per_insert - samples
// (inserts and samples of items, since the table began)
// - n items may be sampled if inserts - deletes >= min_size and d - n >= min_diff;
// - n items may be inserted if inserts + n - deletes <= min_size (free while the table fills), or
//   d + n * samples_per_insert <= max_diff.
// These are Reverb's gates (Cassirer et al. 2021).
struct RateLimiterOptions {
  double samples_per_insert = 1.0;
  std::int64_t min_size = 1;
  double min_diff = -std::numeric_limits<double>::infinity();
  double max_diff = std::numeric_limits<double>::infinity();

  // Sampling waits until the table holds `size` items; nothing else waits.
  static RateLimiterOptions MinSize(std::int64_t size);
  // Every item is sampled exactly once, in a table of at most `size`: for FIFO samplers and
  // times_sampled_max = 1.
  static RateLimiterOptions Queue(std::int64_t size);
  // As Queue, for LIFO samplers.
  static RateLimiterOptions Stack(std::int64_t size);
  // Each item is sampled `samples_per_insert` times on average, give or take `error_buffer`
  // samples. Throws InvalidArgument unless error_buffer is at least max(1, samples_per_insert).
  static RateLimiterOptions SampleToInsertRatio(double samples_per_insert, std::int64_t min_size,
                                                double error_buffer);

  // Throws InvalidArgument that names the field. The bounds of d may be infinite.
  void Check() const;

  // The most items that one call can ever be given: while the table fills, d reaches
  // min_size * samples_per_insert, later max_diff, and at least min_diff must stay.
  double SamplesMax() const;
};

// Counts, and says what may go on. One thread at a time: the table's mutex guards it.
class RateLimiter {
 public:
  explicit RateLimiter(const RateLimiterOptions& options);

  bool CanInsert(std::int64_t count) const;
  bool CanSample(std::int64_t count) const;

  void Inserted(std::int64_t count) { inserts_ += count; }
  void Sampled(std::int64_t count) { samples_ += count; }
  void Deleted(std::int64_t count) { deletes_ += count; }

  std::int64_t inserts() const { return inserts_; }
  std::int64_t samples() const { return samples_; }
  std::int64_t deletes() const { return deletes_; }
  const RateLimiterOptions& options() const { return options_; }

  // What a blocked call waits for: "rate limiter (4 samples an insert, min size 1000, d in [3000,
  // 5000]): 999 of 1000 items are there, d is 3996 and would be 3964; 1 more insert lets sampling
  // go on".
  std::string WhyNoInsert(std::int64_t count) const;
  std::string WhyNoSample(std::int64_t count) const;

 private:
  RateLimiterOptions options_;
  std::int64_t inserts_ = 0;
  std::int64_t samples_ = 0;
  std::int64_t deletes_ = 0;
};

}  // namespace menger
