#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "menger/base/files.h"

namespace menger {

// What a file holds, as 128 bits (XXH3): files of one hash are taken for the same. It finds damage
// and change, not malice: whoever may name hashes to a node may run programs there anyway.
struct ContentHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool operator==(const ContentHash&) const = default;
  bool operator<(const ContentHash& other) const {
    return high != other.high ? high < other.high : low < other.low;
  }
};

std::string ToHex(const ContentHash& hash);  // 32 digits.

// Of bytes that come one after another. One thread at a time.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  void Add(std::span<const std::byte> bytes);
  ContentHash hash() const;  // Of all so far.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint64_t bytes_ = 0;
};

struct FileContent {
  std::uint64_t bytes = 0;
  ContentHash hash;

  bool operator==(const FileContent&) const = default;
};

// Reads a regular file to its end, a part at a time. Throws as OpenForReading.
FileContent ReadContent(const std::string& path);

// Whether a regular file of that content is at the path. What cannot be read is another.
bool HasContent(const std::string& path, const FileContent& content);

}  // namespace menger
