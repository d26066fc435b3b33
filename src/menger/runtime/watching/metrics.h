#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace menger {

// How many durations there were of which length, in powers of two from a microsecond to a minute. A
// few nanoseconds a duration; guarded by its owner.
class DurationHistogram {
 public:
  // Bucket i holds what took at most 2^(kFirst + i) nanoseconds, and more than that of i - 1; the
  // last also holds what took longer.
  static constexpr int kFirst = 10;
  static constexpr int kBuckets = 28;

  void Add(std::int64_t nanoseconds) {
    const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(nanoseconds, 1));
    const int power = static_cast<int>(std::bit_width(length - 1));
    ++counts_[static_cast<std::size_t>(std::clamp(power - kFirst, 0, kBuckets - 1))];
    sum_ += length;
  }

  std::uint64_t count(int bucket) const { return counts_[static_cast<std::size_t>(bucket)]; }
  double sum_seconds() const { return static_cast<double>(sum_) / 1e9; }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t sum_ = 0;  // Nanoseconds: enough for 584 years.
};

// How fast a count grows, over the last second or two.
class RateMeter {
 public:
  // Several times a second. `now` in nanoseconds, more than 0.
  void Look(std::int64_t now, std::uint64_t count) {
    if (now - newest_.time < 1'000'000'000) return;
    older_ = newest_.time == 0 ? Sample{now, count} : newest_;
    newest_ = {now, count};
  }

  double PerSecond(std::int64_t now, std::uint64_t count) const {
    if (older_.time == 0 || now <= older_.time) return 0;
    return static_cast<double>(count - older_.count) * 1e9 / static_cast<double>(now - older_.time);
  }

 private:
  struct Sample {
    std::int64_t time = 0;
    std::uint64_t count = 0;
  };
  Sample older_;
  Sample newest_;
};

enum class MetricKind { kCounter, kGauge, kHistogram };

// Writes metrics as text that Prometheus reads (exposition format, version 0.0.4):
// content type "text/plain; version=0.0.4".
class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins the samples of one name, which comes once: [a-zA-Z_][a-zA-Z0-9_]*; a counter's ends with
  // "_total", and units are seconds and bytes.
  void Family(std::string_view name, MetricKind kind, std::string_view help);

  // One sample of the family, with label values of any text. The histogram is for a kHistogram.
  void Sample(Labels labels, double value);
  void Sample(Labels labels, const DurationHistogram& histogram);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, Labels labels, std::string_view bound, double value);

  std::string text_;
  std::string family_;
};

}  // namespace menger
