// A fuzz target with libFuzzer's main. Where MENGER_FUZZ_SEEDS names a folder, the seeds are
// written there first.

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "fuzz.h"
#include "menger/base/error.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const folder = std::getenv("MENGER_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  int number = 0;
  for (const auto& seed : menger::fuzz::Seeds()) {
    std::ofstream file(folder + ("/seed-" + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()),
               static_cast<std::streamsize>(seed.size()));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  // Exactly as long, so that reading beyond the end is seen; aligned to 16, as all that `new`
  // gives.
  const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
  if (size > 0) std::memcpy(copy.get(), data, size);
  try {
    menger::fuzz::Read({copy.get(), size});
  } catch (const menger::Error&) {
    return 0;
  }
  return 0;
}
