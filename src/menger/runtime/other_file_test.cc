// For function_test.cc, which has a function of the same name.

#include "menger/runtime/call.h"

namespace menger {

const Function& SameNameInAnotherFile();

static int SameName(int number) { return number; }

const Function& SameNameInAnotherFile() { return FunctionOf<FunctionCall<&SameName>>(); }

}  // namespace menger
