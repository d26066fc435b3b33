#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace menger::bench {

// Work whose results are known: what programs do whose workers or nodes are killed, so that every
// value can be checked. Calls sleep: what counts is how many workers there are, not how many cores.

using Values = std::vector<std::uint64_t>;

// The finaliser of splitmix64 (Steele, Lea and Flood 2014).
inline std::uint64_t Mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// ---- A chain: each link is computed from the one before.

inline constexpr std::size_t kLinkNumbers = 12'800;  // 100 KiB: they lie in the object store.
inline constexpr std::chrono::milliseconds kLinkTime{10};

inline Values Next(std::span<const std::uint64_t> values) {
  Values next(values.size());
  std::ranges::transform(values, next.begin(), Mixed);
  return next;
}
inline Values FirstLink(std::size_t chain) { return Next(Values(kLinkNumbers, chain)); }
inline Values LinkAt(std::size_t chain, std::size_t links) {
  Values values = FirstLink(chain);
  for (std::size_t i = 0; i < links; ++i) values = Next(values);
  return values;
}

// The call.
inline Values Link(std::span<const std::uint64_t> values) {
  std::this_thread::sleep_for(kLinkTime);
  return Next(values);
}

// ---- An actor: what a call returns depends on all before it.

class Simulator {
 public:
  static constexpr std::size_t kStateNumbers = 1000;
  static constexpr std::chrono::milliseconds kStep{2};

  explicit Simulator(std::uint64_t seed) : state_(kStateNumbers, seed) {}

  std::uint64_t Advance(std::uint64_t action) {
    for (std::uint64_t& number : state_) number = Mixed(number + action);
    return state_.front();
  }
  // The call.
  std::uint64_t Step(std::uint64_t action) {
    std::this_thread::sleep_for(kStep);
    return Advance(action);
  }

  pid_t Process() { return getpid(); }

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(state_);
  }

 private:
  Values state_;
};

}  // namespace menger::bench
