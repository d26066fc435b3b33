// A library with a callable of its own, which call_test.cc opens.

#include "menger/runtime/calls/call.h"

namespace menger {
namespace {

int Half(int number) { return number / 2; }

}  // namespace
}  // namespace menger

extern "C" const menger::Function* OpenedFunction() {
  return &menger::FunctionOf<menger::FunctionCall<&menger::Half>>();
}
