#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace menger {

// What the two ends of a stream between nodes say on it first: which of their meetings it is of.
struct MeetingGreeting {
  std::uint64_t own = 0;    // The sender's number of it, from 1.
  std::uint64_t other = 0;  // The receiver's, as the sender has heard; 0: not yet.

  bool operator==(const MeetingGreeting&) const = default;
};
std::vector<std::byte> Encode(const MeetingGreeting& greeting);
// Throws InvalidArgument for what is none.
MeetingGreeting DecodeMeetingGreeting(std::span<const std::byte> bytes);

// A meeting of this node with another one. Each of two nodes that do not reach each other for long
// takes the other for dead, at a time of its own, and buries what it had to do with it; if both
// live they meet again. Nothing that belongs to the meeting of before may be taken for this one's.
// So each counts its meetings with the other, and both say on each stream which they mean: who
// hears of a newer one than he knows was taken for dead.
//
// No I/O, no clock.
class Meeting {
 public:
  explicit Meeting(std::uint64_t own) : own_(own) {}

  enum class Verdict : std::uint8_t {
    kSame,      // The stream belongs to it.
    kOver,      // The other has begun anew: this one is over.
    kOthersIs,  // The other still is at one of before, and hears so on the same stream.
  };
  Verdict Hear(const MeetingGreeting& greeting);

  MeetingGreeting greeting() const { return {own_, other_}; }

 private:
  std::uint64_t own_;
  std::uint64_t other_ = 0;
};

}  // namespace menger
