// error: the actor's class (below) has no constructor for these arguments
#include "menger/runtime/calls/call.h"

class Actor {
 public:
  explicit Actor(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

using Make = menger::ConstructorCallFor<Actor, const char*>;
