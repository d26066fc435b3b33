#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace menger {

// The last steps of a stream, which may have to be sent again: rows of equal size, and the version
// that acted in each, by the step's number. One thread.
class KeptSteps {
 public:
  explicit KeptSteps(std::size_t row_bytes) : row_bytes_(row_bytes) {}

  std::int64_t begin() const { return begin_; }  // The oldest that is kept.
  std::int64_t end() const { return end_; }
  std::size_t bytes() const { return row_bytes_ * static_cast<std::size_t>(end_ - begin_); }

  // Room for the row of a new step, to be filled by the caller.
  std::byte* Add(std::uint64_t version) {
    if (end_ - begin_ == capacity_) Grow();
    const std::size_t slot = SlotOf(end_++);
    versions_[slot] = version;
    return &rows_[slot * row_bytes_];
  }
  std::span<const std::byte> row(std::int64_t step) const {
    return {&rows_[SlotOf(step) * row_bytes_], row_bytes_};
  }
  std::uint64_t version(std::int64_t step) const { return versions_[SlotOf(step)]; }

  void DropBefore(std::int64_t step) { begin_ = std::max(begin_, std::min(step, end_)); }

 private:
  std::size_t SlotOf(std::int64_t step) const { return static_cast<std::size_t>(step % capacity_); }
  // Steps may have megabytes, and a writer many streams of few.
  std::int64_t Grown() const { return capacity_ == 0 ? 2 : 2 * capacity_; }
  void Grow() {
    const std::int64_t capacity = Grown();
    std::vector<std::byte> rows(static_cast<std::size_t>(capacity) * row_bytes_);
    std::vector<std::uint64_t> versions(static_cast<std::size_t>(capacity));
    for (std::int64_t step = begin_; step < end_; ++step) {
      const auto to = static_cast<std::size_t>(step % capacity);
      std::memcpy(&rows[to * row_bytes_], row(step).data(), row_bytes_);
      versions[to] = version(step);
    }
    rows_ = std::move(rows);
    versions_ = std::move(versions);
    capacity_ = capacity;
  }

  const std::size_t row_bytes_;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::int64_t capacity_ = 0;    // In steps.
  std::vector<std::byte> rows_;  // Step s lies in slot s % capacity_.
  std::vector<std::uint64_t> versions_;
};

}  // namespace menger
