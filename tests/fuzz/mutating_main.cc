// A fuzz target without libFuzzer: tries the seeds, and random changes of them.
//
//   menger_fuzz_NAME [RUNS [SEED]]

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fuzz.h"
#include "menger/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace menger::fuzz {
namespace {

constexpr std::array<std::uint64_t, 12> kNumbers = {
    0, 1, 2, 127, 255, 65535, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 1ULL << 63, ~0ULL};

std::size_t Below(Random& random, std::size_t end) {
  return static_cast<std::size_t>(random.Integers(0, static_cast<std::int64_t>(end)));
}

// One change: a bit, a byte, a number of a length's size, an end cut off, a part that comes twice.
void Change(Random& random, Bytes& bytes) {
  if (bytes.empty()) return bytes.push_back(static_cast<std::byte>(Below(random, 256)));
  const std::size_t at = Below(random, bytes.size());
  switch (Below(random, 6)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1U << Below(random, 8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(Below(random, 256));
      break;
    case 2:
    case 3: {
      const std::size_t size = std::size_t{1} << Below(random, 4);
      const std::size_t aligned = at / size * size;
      const std::uint64_t number =
          Below(random, 2) == 0 ? kNumbers[Below(random, kNumbers.size())] : Below(random, 64);
      std::memcpy(&bytes[aligned], &number, std::min(size, bytes.size() - aligned));
      break;
    }
    case 4:
      bytes.resize(at);
      break;
    default: {
      const Bytes part(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                       bytes.begin() + static_cast<std::ptrdiff_t>(
                                           std::min(bytes.size(), at + Below(random, 64))));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(Below(random, bytes.size())),
                   part.begin(), part.end());
    }
  }
}

void Try(const Bytes& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(input.data()), input.size());
}

int Main(std::int64_t runs, std::uint64_t seed) {
  const std::vector<Bytes> seeds = Seeds();
  for (const Bytes& each : seeds) Read(each);  // They are good: no error.
  auto random = Random::FromSeed(seed);
  for (std::int64_t run = 0; run < runs; ++run) {
    Bytes input = seeds[Below(random, seeds.size())];
    for (std::size_t i = 0; i <= Below(random, 4); ++i) Change(random, input);
    Try(input);
  }
  fmt::print("{} seeds, {} changes of them\n", seeds.size(), runs);
  return 0;
}

}  // namespace
}  // namespace menger::fuzz

int main(int argc, char** argv) {
  return menger::fuzz::Main(argc > 1 ? std::atoll(argv[1]) : 10'000,
                            argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
