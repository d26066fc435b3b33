#include "menger/runtime/calls/call.h"

#include <cstring>

#include "menger/base/error.h"

namespace menger {

void FailArgumentCount(const char* callable, std::size_t given, int wanted) {
  throw DataLoss("a call of '{}' arrived with {} arguments; it takes {}", PrettyName(callable),
                 given, wanted);
}

void FailResultCount(const char* callable, int asked_for, int results) {
  throw InvalidArgument("'{}' is asked for {} results; it has {}", PrettyName(callable), asked_for,
                        results);
}

void FailEmptyReference(const char* callable, int position) {
  throw InvalidArgument("argument {} of '{}' is an ObjectRef that refers to nothing", position,
                        PrettyName(callable));
}

void Argument::EncodeTo(std::span<std::byte> out) const {
  if (encode != nullptr) {
    encode(value, out);
  } else if (size > 0) {
    std::memcpy(out.data(), value, size);
  }
}

}  // namespace menger
