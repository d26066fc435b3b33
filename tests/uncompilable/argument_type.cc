// error: cannot be converted to the type of the parameter
#include "menger/runtime/calls/call.h"

int Run(int a, const std::string& b) { return a + static_cast<int>(b.size()); }

void Call() {
  menger::WithArguments<menger::FunctionCall<&Run>>([](auto...) {}, 1, 2);
}
