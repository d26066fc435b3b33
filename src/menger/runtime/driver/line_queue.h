#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace menger {

// Lines that wait for whoever passes them on, of no more than some bytes: who prints without end
// fills nobody's memory. Once one finds no room all that come are left out, and counted, until
// what waits has gone; a Line with the count then takes their place.
//
// A Line has `text` and `left_out`, as PrintedLine. One thread at a time.
template <typename Line>
class LineQueue {
 public:
  explicit LineQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  bool empty() const { return lines_.empty(); }
  std::size_t bytes() const { return bytes_; }

  void Add(Line line) {
    const std::size_t bytes = BytesOf(line);
    if (left_out_ == 0 && (bytes_ + bytes <= bytes_max_ || lines_.empty())) {
      bytes_ += bytes;
      lines_.push_back(std::move(line));
    } else {
      left_out_ += line.left_out > 0 ? line.left_out : 1;
    }
  }

  // The first of them, of so many bytes at the most, or one.
  std::vector<Line> Take(std::size_t bytes_max) {
    std::vector<Line> taken;
    std::size_t bytes = 0;
    while (!lines_.empty() && (taken.empty() || bytes + BytesOf(lines_.front()) <= bytes_max)) {
      bytes += BytesOf(lines_.front());
      taken.push_back(std::move(lines_.front()));
      lines_.pop_front();
    }
    bytes_ -= bytes;
    if (lines_.empty() && left_out_ > 0) {
      taken.emplace_back();
      taken.back().left_out = std::exchange(left_out_, 0);
    }
    return taken;
  }

  // What a line counts as, here and on its way.
  static std::size_t BytesOf(const Line& line) { return line.text.size() + kOverhead; }

 private:
  static constexpr std::size_t kOverhead = 64;

  const std::size_t bytes_max_;
  std::deque<Line> lines_;
  std::size_t bytes_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace menger
