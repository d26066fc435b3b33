#include "menger/runtime/lineage_segment.h"

#include <xxhash.h>

#include <cstring>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/plain_bytes.h"

namespace menger {
namespace {

constexpr std::uint64_t kMagic = 0x314e494c52474e4d;  // "MNGRLIN1".

// Plain bytes.
struct Head {
  std::uint64_t magic = kMagic;
  std::uint64_t build = 0;
  std::uint64_t bytes = 0;     // Behind the head.
  std::uint64_t checksum = 0;  // XXH3 of these, seeded with that of the above.

  std::uint64_t Checksum(std::span<const std::byte> rest) const {
    const std::uint64_t seed = XXH3_64bits(this, sizeof(Head) - sizeof checksum);
    return XXH3_64bits_withSeed(rest.data(), rest.size(), seed);
  }
};
static_assert(sizeof(Head) == LineageSegmentWriter::kHeadBytes);

struct Item {
  Id id;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Item) == LineageSegmentWriter::kItemBytes);

template <typename T>
std::string_view Text(const T& plain) {
  return {reinterpret_cast<const char*>(&plain), sizeof plain};
}

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text));
}

}  // namespace

LineageSegmentWriter::LineageSegmentWriter(std::uint64_t build)
    : value_(Text(Head{.build = build})) {}

void LineageSegmentWriter::Add(const Id& id, std::span<const std::byte> specification) {
  value_ += Text(Item{.id = id, .bytes = specification.size()});
  value_.append(reinterpret_cast<const char*>(specification.data()), specification.size());
}

std::string LineageSegmentWriter::Finish() && {
  Head head;
  std::memcpy(&head, value_.data(), sizeof head);
  head.bytes = value_.size() - sizeof head;
  head.checksum = head.Checksum(Bytes(value_).subspan(sizeof head));
  std::memcpy(value_.data(), &head, sizeof head);
  return std::move(value_);
}

void ReadLineageSegment(
    std::string_view value, std::uint64_t build,
    const std::function<void(const Id& id, std::span<const std::byte> specification)>& visit) {
  PlainReader reader(Bytes(value));
  const auto head = reader.Take<Head>();
  const std::span<const std::byte> rest = Bytes(value).subspan(sizeof head);
  if (head.magic != kMagic || head.bytes != rest.size() || head.checksum != head.Checksum(rest)) {
    throw DataLoss("a segment of {} bytes does not have its checksum", value.size());
  }
  if (head.build != build) {
    throw FailedPrecondition(
        "its specifications are of build {:016x}, which alone can run them; this is {:016x}",
        head.build, build);
  }
  while (!reader.empty()) {
    const auto item = reader.Take<Item>();
    visit(item.id, reader.Take(item.bytes));
  }
}

}  // namespace menger
