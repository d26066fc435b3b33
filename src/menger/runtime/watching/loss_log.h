#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace menger {

// What a node has lost, and why: each loss is a line of the log, but those of one subject (a
// function that crashes its workers again and again) are counted for ten seconds after the first
// and are then one line together. Remembers the last ones. The node's lock guards it.
class LossLog {
 public:
  struct Loss {
    std::int64_t time = 0;  // In nanoseconds; the last time.
    std::uint64_t times = 1;
    std::string subject;
    std::string text;  // Of the last time.
  };

  explicit LossLog(std::function<void(std::string_view line)> write);  // As LogWarning.

  // `text` is a sentence: "worker 3, process 4711, was killed by SIGSEGV".
  void Add(std::int64_t now, std::string_view subject, const std::string& text);

  // Writes the lines that are due; to be called now and then.
  void Tend(std::int64_t now);

  const std::deque<Loss>& losses() const { return losses_; }  // The newest first.

  // Counts one of that cause. After 63 causes all others are "(other)".
  void Count(std::string_view cause);
  const std::map<std::string, std::uint64_t, std::less<>>& causes() const { return causes_; }

 private:
  struct Quiet {
    std::int64_t until = 0;
    std::uint64_t more = 0;
    std::string last;
  };

  void Remember(std::int64_t now, std::string_view subject, const std::string& text);

  const std::function<void(std::string_view line)> write_;
  std::deque<Loss> losses_;
  std::map<std::string, std::uint64_t, std::less<>> causes_;
  std::map<std::string, Quiet, std::less<>> quiet_;  // By subject.
};

}  // namespace menger
