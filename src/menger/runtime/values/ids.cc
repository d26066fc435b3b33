#include "menger/runtime/values/ids.h"

#include <fmt/format.h>

#include <charconv>

namespace menger {
namespace {

// The finaliser of MurmurHash3 (Appleby, public domain): each bit of the input changes each bit of
// the output with a probability of about one half.
std::uint64_t Mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

// `kind` keeps the children, results and actors of one task apart.
template <typename Result>
Result Derive(const Id& parent, std::uint64_t kind, std::uint64_t number) {
  const std::uint64_t salt = Mix(number + (kind << 56) + 0x9e3779b97f4a7c15ULL);
  Result result;
  result.low = Mix(parent.low ^ salt) + parent.high;
  result.high = Mix(parent.high + result.low) ^ salt;
  return result;
}

enum Kind : std::uint64_t {
  kRoot = 1,
  kChild,
  kResult,
  kActor,
  kRun,
  kPut,
  kArgument,
  kDefinition,
  kRandom
};

}  // namespace

TaskId RootTask(std::uint64_t job) { return Derive<TaskId>(Id{}, kRoot, job); }

TaskId RunOf(TaskId task, std::uint32_t run) { return Derive<TaskId>(task, kRun, run); }

TaskId ChildTask(TaskId run, std::uint64_t counter) { return Derive<TaskId>(run, kChild, counter); }

ObjectId ResultOf(TaskId task, std::uint32_t index) {
  return Derive<ObjectId>(task, kResult, index);
}

ObjectId PutBy(TaskId run, std::uint64_t counter) { return Derive<ObjectId>(run, kPut, counter); }

ObjectId ArgumentOf(TaskId task, std::uint32_t position) {
  return Derive<ObjectId>(task, kArgument, position);
}

ObjectId DefinitionIn(TaskId job, const Id& hash) {
  return Derive<ObjectId>(Derive<Id>(job, kDefinition, hash.high), kDefinition, hash.low);
}

Id RandomSeed(TaskId task, std::uint64_t counter) { return Derive<Id>(task, kRandom, counter); }

ActorId ActorOf(TaskId creation) { return Derive<ActorId>(creation, kActor, 0); }

// The bytes in their order in memory: so other languages, which have the bytes, write the same.
std::string ToString(const Id& id) {
  return fmt::format("{:016x}{:016x}", __builtin_bswap64(id.high), __builtin_bswap64(id.low));
}

std::optional<Id> ParseId(std::string_view text) {
  constexpr std::size_t kHalf = 16;
  if (text.size() != 2 * kHalf) return std::nullopt;
  const auto read = [](std::string_view digits, std::uint64_t& half) {
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, half, 16);
    half = __builtin_bswap64(half);
    return error == std::errc() && at == end;
  };
  Id id;
  if (!read(text.substr(0, kHalf), id.high) || !read(text.substr(kHalf), id.low)) {
    return std::nullopt;
  }
  return id;
}

}  // namespace menger
