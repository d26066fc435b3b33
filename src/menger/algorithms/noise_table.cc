#include "menger/algorithms/noise_table.h"

#include "menger/base/error.h"

namespace menger {
namespace {

// Of CounterRandom.
constexpr std::uint32_t kTableStream = 4;
constexpr std::uint32_t kPairStream = 5;

}  // namespace

std::vector<float> MakeNoiseTable(std::int64_t entries, std::uint64_t seed) {
  const CounterRandom random(seed, kTableStream);
  std::vector<float> table(static_cast<std::size_t>(entries));
  for (std::size_t i = 0; i < table.size(); i += 4) {
    const auto words = random.Draw(/*environment=*/0, /*step=*/i / 4);
    const auto [a, b] = CounterRandom::Normals(words[0], words[1]);
    const auto [c, d] = CounterRandom::Normals(words[2], words[3]);
    const float four[] = {a, b, c, d};
    for (std::size_t k = 0; k < 4 && i + k < table.size(); ++k) table[i + k] = four[k];
  }
  return table;
}

PairStream::PairStream(std::uint64_t seed, std::int64_t entries, std::int64_t parameters,
                       double observe_probability)
    : random_(seed, kPairStream),
      starts_(static_cast<std::uint64_t>(entries - parameters + 1)),
      observe_probability_(observe_probability) {
  if (parameters < 1 || parameters > entries) {
    throw InvalidArgument(
        "es.noise_entries = {}: the network has {} parameters; the table must be larger, best many "
        "times",
        entries, parameters);
  }
}

PairDraws PairStream::Draw(std::int64_t iteration, std::int64_t pair) const {
  const auto step = static_cast<std::uint64_t>(iteration);
  const auto index = static_cast<std::uint64_t>(pair);
  const auto first = random_.Draw(index, step, /*block=*/0);
  const auto second = random_.Draw(index, step, /*block=*/1);
  const auto join = [](std::uint32_t high, std::uint32_t low) {
    return (std::uint64_t{high} << 32) | low;
  };
  PairDraws draws{.noise_index = static_cast<std::int64_t>((first[0] * starts_) >> 32),
                  .environment_seed = join(first[1], first[2]) >> 16,
                  .action_seed = join(first[3], second[0])};
  for (int sign = 0; sign < 2; ++sign) {
    draws.observe[sign] = CounterRandom::Uniform01(second[1 + sign]) < observe_probability_;
  }
  return draws;
}

}  // namespace menger
