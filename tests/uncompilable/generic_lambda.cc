// error: name one of several overloads by static_cast, and give parameters of lambdas a type
#include "menger/runtime/calls/call.h"

const menger::Function& function =
    menger::FunctionOf<menger::FunctionCall<[](auto number) { return number; }>>();
