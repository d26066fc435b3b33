#pragma once

#include <string>
#include <string_view>

namespace menger {

// The compiler's words for a type or a value known at compile time; PrettyName makes them readable.
template <typename T>
constexpr const char* CompilerName() {
  return __PRETTY_FUNCTION__;
}
template <auto kValue>
constexpr const char* CompilerName() {
  return __PRETTY_FUNCTION__;
}

// "std::vector<float>", "Simulator::Rollout", "main()::<lambda(int)>". For people: two things may
// have the same name.
std::string PrettyName(std::string_view compiler_name);

}  // namespace menger
