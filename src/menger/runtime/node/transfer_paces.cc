#include "menger/runtime/node/transfer_paces.h"

#include <algorithm>
#include <cstddef>

namespace menger {
namespace {

constexpr double kLeast = 1e-3;
constexpr double kMost = 1e4;   // 100 kB a second.
constexpr double kBytes = 4e6;  // So many count as much as all before.

std::uint64_t WayOf(PeerIndex from, PeerIndex to) { return std::uint64_t{from} << 32 | to; }
std::size_t KindOf(PeerIndex from, PeerIndex to) { return from == 0 || to == 0 ? 1 : 0; }

}  // namespace

double TransferPaces::Of(PeerIndex from, PeerIndex to) const {
  const auto known = paces_.find(WayOf(from, to));
  return known != paces_.end() ? known->second : of_all_[KindOf(from, to)];
}

void TransferPaces::Note(PeerIndex from, PeerIndex to, std::uint64_t bytes,
                         std::int64_t nanoseconds) {
  if (bytes == 0) return;
  const auto size = static_cast<double>(bytes);
  const double pace = std::clamp(static_cast<double>(nanoseconds) / size, kLeast, kMost);
  double& of_all = of_all_[KindOf(from, to)];
  double& known = paces_.try_emplace(WayOf(from, to), of_all).first->second;
  for (double* const mean : {&known, &of_all}) *mean += (pace - *mean) * size / (size + kBytes);
}

void TransferPaces::Forget(PeerIndex node) {
  std::erase_if(paces_, [node](const auto& way) {
    return way.first >> 32 == node || (way.first & 0xffffffff) == node;
  });
}

}  // namespace menger
