#include "menger/replay/selectors/rate_limiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As Reverb computes it, product first: sums and differences of whole numbers below 2^53 are exact,
// so d has the one rounding of the product, and another where something was forgone.
double DifferenceOf(const RateLimiterOptions& options, std::int64_t inserts, std::int64_t samples,
                    double forgone) {
  return static_cast<double>(inserts) * options.samples_per_insert - static_cast<double>(samples) -
         forgone;
}

bool IsFinite(const RateLimiterOptions& options) {
  return std::isfinite(options.min_diff) && std::isfinite(options.max_diff);
}

// The smallest count >= 0 for which `enough` holds, near a first guess by the same formula with
// other roundings.
template <typename Enough>
std::int64_t SmallestCount(double guess, Enough enough) {
  if (!(guess < 1e15)) return static_cast<std::int64_t>(1e15);
  auto count = static_cast<std::int64_t>(std::max(0.0, std::ceil(guess) - 1));
  while (!enough(count)) ++count;
  return count;
}

std::string Counted(std::int64_t count, const char* what) {
  return fmt::format("{} more {}{}", count, what, count == 1 ? "" : "s");
}

std::string Describe(const RateLimiterOptions& options) {
  std::string text =
      fmt::format("rate limiter ({} sample{} an insert, min size {}", options.samples_per_insert,
                  options.samples_per_insert == 1 ? "" : "s", options.min_size);
  if (options.min_diff > -kInfinity || options.max_diff < kInfinity) {
    text += fmt::format(", d in [{}, {}]", options.min_diff, options.max_diff);
  }
  return text + ")";
}

}  // namespace

RateLimiterOptions RateLimiterOptions::MinSize(std::int64_t size) {
  return {.samples_per_insert = 1, .min_size = size, .min_diff = -kInfinity, .max_diff = kInfinity};
}

RateLimiterOptions RateLimiterOptions::Queue(std::int64_t size) {
  return {
      .samples_per_insert = 1, .min_size = 1, .min_diff = 0, .max_diff = static_cast<double>(size)};
}

RateLimiterOptions RateLimiterOptions::Stack(std::int64_t size) { return Queue(size); }

RateLimiterOptions RateLimiterOptions::SampleToInsertRatio(double samples_per_insert,
                                                           std::int64_t min_size,
                                                           double error_buffer) {
  const double needed = std::max(1.0, samples_per_insert);
  if (!(error_buffer >= needed)) {
    throw InvalidArgument("error_buffer is {}; with {} samples an insert it must be at least {}",
                          error_buffer, samples_per_insert, needed);
  }
  const double middle = samples_per_insert * static_cast<double>(min_size);
  return {.samples_per_insert = samples_per_insert,
          .min_size = min_size,
          .min_diff = middle - error_buffer,
          .max_diff = middle + error_buffer};
}

void RateLimiterOptions::Check() const {
  if (!std::isfinite(samples_per_insert) || samples_per_insert <= 0) {
    throw InvalidArgument("samples_per_insert is {}; it must be finite and above 0",
                          samples_per_insert);
  }
  if (min_size < 1) throw InvalidArgument("min_size is {}; it must be at least 1", min_size);
  if (!(min_diff <= max_diff) || min_diff == kInfinity || max_diff == -kInfinity) {
    throw InvalidArgument("min_diff is {} and max_diff is {}; they must be in order", min_diff,
                          max_diff);
  }
}

RateLimiter::RateLimiter(const RateLimiterOptions& options) : options_(options) {
  options_.Check();
}

// ---- Gates

double RateLimiter::Difference(std::int64_t more_inserts, std::int64_t more_samples) const {
  return DifferenceOf(options_, counts_.inserts + more_inserts, counts_.samples + more_samples,
                      counts_.forgone);
}

bool RateLimiter::CanInsert(std::int64_t count) const {
  return items() + count <= options_.min_size || Difference(count, 0) <= options_.max_diff;
}

bool RateLimiter::CanSample(std::int64_t count) const {
  return items() >= options_.min_size && Difference(0, count) >= options_.min_diff;
}

std::int64_t RateLimiter::SamplesAllowed(std::int64_t count) const {
  if (CanSample(count)) return count;
  std::int64_t allowed = 0;  // CanSample(allowed), as far as anything may be sampled at all...
  for (std::int64_t end = count; end - allowed > 1;) {  // ... and never CanSample(end).
    const std::int64_t middle = allowed + (end - allowed) / 2;
    (CanSample(middle) ? allowed : end) = middle;
  }
  return allowed;
}

// ---- Another limiter's counts

void RateLimiter::Restore(const RateLimiterCounts& counts, const RateLimiterOptions& there) {
  counts_ = counts;
  if (there == options_) return;
  const double before = DifferenceOf(there, counts.inserts, counts.samples, counts.forgone);
  if (items() < options_.min_size) {
    MoveTo(static_cast<double>(items()) * options_.samples_per_insert);
  } else if (IsFinite(there) && IsFinite(options_) && there.max_diff > there.min_diff) {
    const double share =
        std::clamp((before - there.min_diff) / (there.max_diff - there.min_diff), 0.0, 1.0);
    MoveTo(options_.min_diff + share * (options_.max_diff - options_.min_diff));
  } else if (IsFinite(options_)) {
    MoveTo((options_.min_diff + options_.max_diff) / 2);
  } else {
    MoveTo(std::clamp(before, options_.min_diff, options_.max_diff));
  }
}

void RateLimiter::MoveTo(double d) { counts_.forgone += Difference(0, 0) - d; }

// ---- What a blocked call waits for

std::string RateLimiter::WhyNoInsert(std::int64_t count) const {
  const std::int64_t samples = SmallestCount(
      Difference(count, 0) - options_.max_diff,
      [&](std::int64_t more) { return Difference(count, more) <= options_.max_diff; });
  const std::int64_t deletes = items() + count - options_.min_size;
  return fmt::format("{}: d is {} and would be {}; {} or {} let inserting go on",
                     Describe(options_), Difference(0, 0), Difference(count, 0),
                     Counted(samples, "sample"), Counted(deletes, "deletion"));
}

std::string RateLimiter::WhyNoSample(std::int64_t count) const {
  const double missing = options_.min_diff - Difference(0, count);
  const std::int64_t by_diff = SmallestCount(
      missing / options_.samples_per_insert,
      [&](std::int64_t more) { return Difference(more, count) >= options_.min_diff; });
  const std::int64_t inserts = std::max(by_diff, options_.min_size - items());
  std::string text = Describe(options_) + ": ";
  if (items() < options_.min_size) {
    text += fmt::format("{} of {} items are there, ", items(), options_.min_size);
  }
  return text + fmt::format("d is {} and would be {}; {} let{} sampling go on", Difference(0, 0),
                            Difference(0, count), Counted(inserts, "insert"),
                            inserts == 1 ? "s" : "");
}

}  // namespace menger
