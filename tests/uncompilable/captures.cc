// error: Pointers, references, and lambdas with captures cannot be sent
#include "menger/runtime/values/serialise.h"

std::size_t Size(int number) {
  return menger::EncodedSize([&number] { return number; });
}
