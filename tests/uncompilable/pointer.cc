// error: a value of this type (T, below) cannot be sent
#include "menger/runtime/calls/call.h"

struct Task {
  int number;
  const char* text;
};
int Run(const Task& task) { return task.number; }

const menger::Function& function = menger::FunctionOf<menger::FunctionCall<&Run>>();
