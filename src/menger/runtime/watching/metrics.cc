#include "menger/runtime/watching/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace menger {
namespace {

void AppendEscaped(std::string_view text, bool quotes, std::string& into) {
  for (const char character : text) {
    if (character == '\n') {
      into += "\\n";
    } else {
      if (character == '\\' || (quotes && character == '"')) into += '\\';
      into += character;
    }
  }
}

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void MetricsText::Family(std::string_view name, MetricKind kind, std::string_view help) {
  static constexpr const char* kKinds[] = {"counter", "gauge", "histogram"};
  family_ = name;
  text_ += fmt::format("# HELP {} ", name);
  AppendEscaped(help, /*quotes=*/false, text_);
  text_ += fmt::format("\n# TYPE {} {}\n", name, kKinds[static_cast<int>(kind)]);
}

void MetricsText::Sample(Labels labels, double value) { Line("", labels, "", value); }

void MetricsText::Sample(Labels labels, const DurationHistogram& histogram) {
  double count = 0;
  for (int i = 0; i < DurationHistogram::kBuckets; ++i) {
    count += static_cast<double>(histogram.count(i));
    const bool is_last = i + 1 == DurationHistogram::kBuckets;
    const double bound =
        static_cast<double>(std::uint64_t{1} << (DurationHistogram::kFirst + i)) / 1e9;
    Line("_bucket", labels, is_last ? "+Inf" : Number(bound), count);
  }
  Line("_sum", labels, "", histogram.sum_seconds());
  Line("_count", labels, "", count);
}

// `bound`: of a bucket of a histogram, else empty.
void MetricsText::Line(std::string_view suffix, Labels labels, std::string_view bound,
                       double value) {
  text_ += family_;
  text_ += suffix;
  char separator = '{';
  const auto add = [&](std::string_view label, std::string_view content) {
    text_ += separator;
    text_ += label;
    text_ += "=\"";
    AppendEscaped(content, /*quotes=*/true, text_);
    text_ += '"';
    separator = ',';
  };
  for (const auto& [label, content] : labels) add(label, content);
  if (!bound.empty()) add("le", bound);
  if (separator == ',') text_ += '}';
  text_ += ' ';
  text_ += Number(value);
  text_ += '\n';
}

}  // namespace menger
