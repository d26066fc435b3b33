#include "menger/algorithms/schedule.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <sstream>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr const char* kForm =
    "constant, linear, cosine, or points such as \"0:1 0.5:1 1:0.1\": shares of the run in rising "
    "order from 0, each with the factor there";

bool ReadNumber(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

// False if the text is no list of points.
bool ReadPoints(const std::string& text, std::vector<std::pair<double, double>>& points) {
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const std::size_t colon = word.find(':');
    std::pair<double, double> point;
    if (colon == std::string::npos ||
        !ReadNumber(std::string_view(word).substr(0, colon), point.first) ||
        !ReadNumber(std::string_view(word).substr(colon + 1), point.second) || point.second < 0 ||
        point.first > 1) {
      return false;
    }
    if (points.empty() ? point.first != 0 : point.first <= points.back().first) return false;
    points.push_back(point);
  }
  return !points.empty();
}

bool IsSchedule(const std::string& text) {
  std::vector<std::pair<double, double>> points;
  return text == "constant" || text == "linear" || text == "cosine" || ReadPoints(text, points);
}

}  // namespace

Schedule::Schedule(const std::string& text) {
  if (text == "cosine") return;
  if (text == "constant") {
    points_ = {{0, 1}};
  } else if (text == "linear") {
    points_ = {{0, 1}, {1, 0}};
  } else if (!ReadPoints(text, points_)) {
    throw InvalidArgument("\"{}\" is no schedule; it must be {}", text, kForm);
  }
}

double Schedule::At(double progress) const {
  if (points_.empty()) return 0.5 * (1 + std::cos(std::numbers::pi * progress));
  std::size_t next = 0;
  while (next < points_.size() && points_[next].first <= progress) ++next;
  if (next == points_.size()) return points_.back().second;
  const auto [begin, from] = points_[next - 1];
  const auto [end, to] = points_[next];
  return from + (to - from) * (progress - begin) / (end - begin);
}

void Schedule::Declare(Options& options, std::string name, std::string* field,
                       const std::string& what) {
  options.Add(std::move(name), field,
              {.choices = {"constant", "linear", "cosine"},
               .accepts = IsSchedule,
               .form = "points of a schedule such as \"0:1 0.5:1 1:0.1\"",
               .consequence = "what " + what + " is multiplied by: linear and cosine fall to 0"});
}

}  // namespace menger
