#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace menger {

// Connections that were turned away, as lines of a node's log: of each minute the first ones, and
// the others as a number, so that somebody who tries every port of a machine fills no disk. A
// minute begins with a connection that is written down. Any thread.
class RefusalLog {
 public:
  static constexpr std::size_t kWrittenMax = 10;
  static constexpr std::int64_t kMinute = 60'000'000'000;  // Nanoseconds.

  explicit RefusalLog(std::function<void(std::string_view line)> write);  // As LogWarning.

  void Add(std::int64_t now, const std::string& address, std::string_view why);
  // Writes the number of those that were left out, once their minute is over; to be called now and
  // then.
  void Tend(std::int64_t now);

 private:
  void EndMinute(std::int64_t now);  // With mutex_ held.

  const std::function<void(std::string_view line)> write_;
  std::mutex mutex_;
  std::int64_t ends_at_ = 0;    // The minute. Guarded by mutex_, as what follows.
  std::size_t written_ = 0;     // In it,
  std::uint64_t left_out_ = 0;  // and not,
  std::string last_;            // of which this is the last one's address.
};

}  // namespace menger
