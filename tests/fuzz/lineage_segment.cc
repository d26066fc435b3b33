// Segments of lineage, as the control store keeps them; their checksum is made right, or nothing
// but that would be tried.

#include "menger/runtime/lineage_segment.h"

#include <xxhash.h>

#include <cstring>

#include "fuzz.h"

namespace menger::fuzz {
namespace {

constexpr std::uint64_t kBuild = 1;
constexpr std::size_t kChecksumAt = 24;  // The last word of the head.

void MakeWhole(std::string& value) {
  if (value.size() < LineageSegmentWriter::kHeadBytes) return;
  const std::size_t rest = value.size() - LineageSegmentWriter::kHeadBytes;
  const std::uint64_t seed = XXH3_64bits(value.data(), kChecksumAt);
  const std::uint64_t sum =
      XXH3_64bits_withSeed(value.data() + LineageSegmentWriter::kHeadBytes, rest, seed);
  std::memcpy(value.data() + kChecksumAt, &sum, sizeof(sum));
}

}  // namespace

void Read(std::span<const std::byte> input) {
  std::string value(reinterpret_cast<const char*>(input.data()), input.size());
  MakeWhole(value);
  unsigned sum = 0;
  ReadLineageSegment(value, kBuild, [&](const Id&, std::span<const std::byte> specification) {
    for (const std::byte byte : specification) sum += static_cast<unsigned>(byte);
  });
  asm volatile("" : : "r"(sum));
}

std::vector<Bytes> Seeds() {
  LineageSegmentWriter writer(kBuild);
  for (std::size_t i = 0; i < 3; ++i) {
    writer.Add(RootTask(i), Bytes(i * 30, static_cast<std::byte>(i)));
  }
  const std::string value = std::move(writer).Finish();
  const auto bytes = std::as_bytes(std::span(value));
  return {Bytes(bytes.begin(), bytes.end())};
}

}  // namespace menger::fuzz
