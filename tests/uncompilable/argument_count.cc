// error: the number of arguments (Args, below) is not that of the parameters
#include "menger/runtime/calls/call.h"

int Run(int a, int b) { return a + b; }

void Call() {
  menger::WithArguments<menger::FunctionCall<&Run>>([](auto...) {}, 1);
}
