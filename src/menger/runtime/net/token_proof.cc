#include "menger/runtime/net/token_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <vector>

#include "menger/base/error.h"

namespace menger {

Nonce DrawNonce() {
  Nonce nonce;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), kNonceBytes) != 1) {
    throw Unavailable("the system has no random numbers for a connection");
  }
  return nonce;
}

TokenProof ProveToken(std::string_view token, std::string_view role,
                      std::span<const std::span<const std::byte>> said) {
  std::vector<std::byte> text;
  const auto role_bytes = std::as_bytes(std::span(role));
  text.assign(role_bytes.begin(), role_bytes.end());
  text.push_back(std::byte{0});
  for (const std::span<const std::byte> piece : said) {
    text.insert(text.end(), piece.begin(), piece.end());
  }
  // OpenSSL takes a null key for the one that was used before.
  const char* const key = token.empty() ? "" : token.data();
  TokenProof proof;
  unsigned int bytes = 0;
  const unsigned char* const done =
      HMAC(EVP_sha256(), key, static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &bytes);
  if (done == nullptr || bytes != kProofBytes) {
    throw Internal("OpenSSL could not compute HMAC-SHA256");
  }
  return proof;
}

bool SameProof(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace menger
