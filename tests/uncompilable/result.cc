// error: a value of this type (T, below) cannot be sent
#include "menger/runtime/calls/call.h"

struct Task {
  std::vector<int> numbers;
};
Task* Run() { return nullptr; }

const menger::Function& function = menger::FunctionOf<menger::FunctionCall<&Run>>();
