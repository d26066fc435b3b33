#include "menger/runtime/cluster/content_hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <new>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

FileContent ReadToEnd(const FileDescriptor& file, const std::string& path) {
  std::vector<std::byte> part(kReadBytes);
  ContentHasher hasher;
  for (;;) {
    const ssize_t got = read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FromErrno(fmt::format("cannot read '{}'", path), errno);
    if (got == 0) return {.bytes = hasher.bytes(), .hash = hasher.hash()};
    hasher.Add(std::span(part).first(static_cast<std::size_t>(got)));
  }
}

}  // namespace

std::string ToHex(const ContentHash& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

struct ContentHasher::State {
  State() : hash(XXH3_createState()) {
    if (hash == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(hash);
  }
  ~State() { XXH3_freeState(hash); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* const hash;
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {}
ContentHasher::~ContentHasher() = default;

void ContentHasher::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->hash, bytes.data(), bytes.size());
  bytes_ += bytes.size();
}

ContentHash ContentHasher::hash() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->hash);
  return {.high = hash.high64, .low = hash.low64};
}

FileContent ReadContent(const std::string& path) {
  const FileDescriptor file = OpenForReading(path);
  FileSize(file, path);  // It is a regular file.
  return ReadToEnd(file, path);
}

bool HasContent(const std::string& path, const FileContent& content) {
  try {
    // What is no regular file may keep one waiting.
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid() || FileSize(file, path) != content.bytes) return false;
    return ReadToEnd(file, path) == content;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace menger
