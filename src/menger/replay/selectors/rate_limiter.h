#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace menger {

// How fast a table may be sampled against how fast it is filled. With
//   d = inserts * samples_per_insert - samples - forgone
// (inserts and samples of items, since the table began; forgone are samples that items can no
// longer give, because they went before)
// - n items may be sampled if inserts - deletes >= min_size and d - n >= min_diff;
// - n items may be inserted if inserts + n - deletes <= min_size (free while the table fills), or
//   d + n * samples_per_insert <= max_diff.
// These are Reverb's gates (Cassirer et al. 2021), which forgo nothing: there a queue takes less
// and less as items are deleted.
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

  bool operator==(const RateLimiterOptions&) const = default;
};

// What a limiter has counted. Plain bytes.
struct RateLimiterCounts {
  std::int64_t inserts = 0;
  std::int64_t samples = 0;
  std::int64_t deletes = 0;
  double forgone = 0;  // Less than 0 where d was moved so that it fits another limiter's window.

  bool operator==(const RateLimiterCounts&) const = default;
};

// Counts, and says what may go on. One thread at a time: the table's mutex guards it.
class RateLimiter {
 public:
  explicit RateLimiter(const RateLimiterOptions& options);

  bool CanInsert(std::int64_t count) const;
  bool CanSample(std::int64_t count) const;
  // How many of `count` may be sampled now: asked draw by draw, where none removes an item.
  std::int64_t SamplesAllowed(std::int64_t count) const;

  void Inserted(std::int64_t count) { counts_.inserts += count; }
  void Sampled(std::int64_t count) { counts_.samples += count; }
  void Deleted(std::int64_t count) { counts_.deletes += count; }
  void Forgo(double samples) { counts_.forgone += samples; }

  const RateLimiterCounts& counts() const { return counts_; }
  const RateLimiterOptions& options() const { return options_; }

  // Goes on from what was counted under the options `there`. Under others d means something else:
  // it moves to the same share of this window as it had of that one; to what a table has that fills
  // while there are fewer than min_size items; and else as little as brings it into the window.
  void Restore(const RateLimiterCounts& counts, const RateLimiterOptions& there);
  void MoveTo(double d);

  // What a blocked call waits for: "rate limiter (4 samples an insert, min size 1000, d in [3000,
  // 5000]): 999 of 1000 items are there, d is 3996 and would be 3964; 1 more insert lets sampling
  // go on".
  std::string WhyNoInsert(std::int64_t count) const;
  std::string WhyNoSample(std::int64_t count) const;

 private:
  double Difference(std::int64_t more_inserts, std::int64_t more_samples) const;
  std::int64_t items() const { return counts_.inserts - counts_.deletes; }

  const RateLimiterOptions options_;
  RateLimiterCounts counts_;
};

}  // namespace menger
