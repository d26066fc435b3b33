#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "menger/base/error.h"

namespace menger {

// The system has no memory left for something of known size.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(const std::string& text) : Error(ErrorCode::kUnavailable, text) {}
};

// What this process may use at most: the machine's memory, or less where a control group (of a
// container, of a batch system) or the address space (ulimit -v) is limited.
std::uint64_t MemoryLimit();

// The least that the control groups of a process allow, of version 1 or 2, those around them
// included; the largest number if none does. `membership` is its "/proc/<id>/cgroup", `mount` where
// the groups are. Groups that cannot be seen from here are passed over.
std::uint64_t ControlGroupLimit(const std::string& membership, const std::string& mount);

std::string MemoryText(double bytes);  // "512 B", "1.5 MiB", "34.4 GiB"

// Throws Unavailable where `bytes`, all of which will be written, are more than there can be: it
// would not be an allocation that fails, but the kernel that ends the process.
void RequireMemory(double bytes, std::string_view purpose);

[[noreturn]] void ThrowOutOfMemory(std::string_view purpose, std::string_view cause);

// Calls `function`. Where memory ends in it, throws Unavailable "out of memory for <purpose>", with
// what `purpose()` says: whoever reads it must know which setting takes so much. An error that says
// so already passes.
template <typename Purpose, typename Function>
decltype(auto) WithMemoryFor(Purpose purpose, Function&& function) {
  try {
    return function();
  } catch (const OutOfMemory& error) {
    ThrowOutOfMemory(purpose(), error.what());
  } catch (const std::bad_alloc&) {
    ThrowOutOfMemory(purpose(), "");
  } catch (const std::length_error&) {  // More than a std::vector could ever hold.
    ThrowOutOfMemory(purpose(), "");
  }
}

}  // namespace menger
