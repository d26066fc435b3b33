#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace menger::fuzz {

// What each target here defines: something that reads bytes which may be damaged or hostile. A
// program of it with libFuzzer (libfuzzer_main.cc) looks for bytes that crash it; one without
// (mutating_main.cc) tries random changes of the seeds.

using Bytes = std::vector<std::byte>;

// Reads `input`; may throw an Error, and nothing else. `input` is aligned to 16.
void Read(std::span<const std::byte> input);

// Inputs as they should be.
std::vector<Bytes> Seeds();

}  // namespace menger::fuzz
