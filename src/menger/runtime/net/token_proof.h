#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace menger {

// How two ends of a stream show each other that they know the cluster's token without saying it:
// each signs what both have said, numbers that the other has drawn for this once among it.

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
using Nonce = std::array<std::byte, kNonceBytes>;
using TokenProof = std::array<std::byte, kProofBytes>;

// From the system's source of secrets. Throws Unavailable.
Nonce DrawNonce();

// HMAC-SHA256 with the token as its key, of the pieces one behind the other: `role` ends where the
// other ones, whose lengths are fixed, begin. An empty token is one, too.
TokenProof ProveToken(std::string_view token, std::string_view role,
                      std::span<const std::span<const std::byte>> said);

// Takes as long wherever they differ.
bool SameProof(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace menger
