// Both ends of a ring over memory that the other side may fill with anything at any moment.
//
// The input is a list of steps of 16 bytes: what is done, and, before that, a number that is
// written somewhere in the ring's memory.

#include "menger/base/sharing/ring.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "fuzz.h"
#include "menger/base/error.h"

namespace menger::fuzz {
namespace {

constexpr std::size_t kCapacity = 1024;
constexpr std::size_t kNear = 128;  // Where it begins again when it is empty.

struct Step {
  std::uint64_t number = 0;
  std::uint32_t where = 0;  // The position in the memory; beyond its end: nothing is written.
  std::uint16_t bytes = 0;  // Of an entry that is written.
  std::uint8_t action = 0;
  std::uint8_t unused = 0;
};
static_assert(sizeof(Step) == 16);

struct alignas(64) Line {
  std::array<std::byte, 64> bytes{};
};

class Ends {
 public:
  Ends() : memory_((RingBytes(kCapacity) + 63) / 64), writer_(bytes(), kNear), reader_(bytes()) {}

  void Do(const Step& step) {
    const std::size_t where = std::size_t{step.where} / 8 * 8;
    if (where < bytes().size()) std::memcpy(bytes().data() + where, &step.number, 8);
    switch (step.action % 8) {
      case 0:
      case 1: {
        const auto kind = step.action % 8 == 0 ? RingEntryKind::kPlain : RingEntryKind::kClaimable;
        const std::span<std::byte> room = writer_.Reserve(step.bytes % (kCapacity / 4 + 1), kind);
        std::fill(room.begin(), room.end(), std::byte{1});
        break;
      }
      case 2:
        writer_.Publish();
        break;
      case 3:
        writer_.TryRecall(writer_.last());
        break;
      case 4:
        if (const RingEntry entry = reader_.Next()) Touch(entry);
        break;
      case 5:
        if (entry_) reader_.TryClaim(entry_);
        break;
      case 6:
        reader_.Release();
        entry_ = {};
        break;
      default:
        writer_.GiveMemoryBack();
    }
  }

 private:
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(memory_.data()), RingBytes(kCapacity)};
  }

  void Touch(const RingEntry& entry) {
    unsigned sum = 0;
    for (const std::byte byte : entry.bytes) sum += static_cast<unsigned>(byte);
    asm volatile("" : : "r"(sum));
    entry_ = entry;
  }

  std::vector<Line> memory_;
  RingWriter writer_;
  RingReader reader_;
  RingEntry entry_;
};

Bytes Encoded(std::span<const Step> steps) {
  const auto bytes = std::as_bytes(steps);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void Read(std::span<const std::byte> input) {
  Ends ends;
  for (; input.size() >= sizeof(Step); input = input.subspan(sizeof(Step))) {
    Step step;
    std::memcpy(&step, input.data(), sizeof(step));
    ends.Do(step);
  }
}

std::vector<Bytes> Seeds() {
  constexpr std::uint32_t kNowhere = 1U << 30;
  std::vector<Bytes> seeds;
  for (const std::uint16_t bytes : {std::uint16_t{0}, std::uint16_t{40}, std::uint16_t{250}}) {
    std::vector<Step> steps;
    for (int i = 0; i < 20; ++i) {
      for (const std::uint8_t action : {1, 2, 4, 5, 0, 2, 4, 6}) {
        steps.push_back({.where = kNowhere, .bytes = bytes, .action = action});
      }
    }
    seeds.push_back(Encoded(steps));
  }
  return seeds;
}

}  // namespace menger::fuzz
