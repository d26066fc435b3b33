#pragma once

#include <string>
#include <string_view>

namespace menger {

// What names this process to whoever operates its cluster, and no other process ever: "process 4711
// of HOST, begun at 815 (MACHINE)", with when it began as the kernel counts it, and a mark of the
// machine since its last start and of the process numbers in it.
std::string NameOfThisProcess();

// Whether the process of that name was one of this machine, and is no more. Where that cannot be
// known: no.
bool HasEnded(std::string_view name);

}  // namespace menger
