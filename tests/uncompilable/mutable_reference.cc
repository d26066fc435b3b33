// error: a parameter cannot be a reference to something that is not const
#include "menger/runtime/calls/call.h"

void Run(std::vector<int>& numbers) { numbers.clear(); }

const menger::Function& function = menger::FunctionOf<menger::FunctionCall<&Run>>();
