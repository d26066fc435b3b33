#include "menger/runtime/cluster/meeting.h"

#include "menger/base/error.h"
#include "menger/runtime/net/wire_bytes.h"

namespace menger {

std::vector<std::byte> Encode(const MeetingGreeting& greeting) {
  WireWriter writer;
  writer.Add(greeting.own);
  writer.Add(greeting.other);
  return writer.Take();
}

MeetingGreeting DecodeMeetingGreeting(std::span<const std::byte> bytes) {
  WireReader reader("the first frame of a node", bytes);
  MeetingGreeting greeting;
  greeting.own = reader.Take<std::uint64_t>("meeting");
  greeting.other = reader.Take<std::uint64_t>("other meeting");
  reader.Finish();
  if (greeting.own == 0) throw InvalidArgument("a node numbers a meeting 0; they begin at 1");
  return greeting;
}

Meeting::Verdict Meeting::Hear(const MeetingGreeting& greeting) {
  if (greeting.other != 0 && greeting.other != own_) return Verdict::kOthersIs;
  if (other_ != 0 && greeting.own != other_) return Verdict::kOver;
  other_ = greeting.own;
  return Verdict::kSame;
}

}  // namespace menger
