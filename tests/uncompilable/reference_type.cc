// error: a reference is not converted: X must be the parameter's type
#include "menger/runtime/calls/call.h"

int Run(double a) { return static_cast<int>(a); }

void Call(const menger::ObjectRef<int>& reference) {
  menger::WithArguments<menger::FunctionCall<&Run>>([](auto...) {}, reference);
}
