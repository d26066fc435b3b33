// error: it needs a default constructor
#include "menger/runtime/calls/call.h"

class Task {
 public:
  explicit Task(int number) : number_(number) {}
  template <class Archive>
  void Serialize(Archive& archive) {
    archive(number_);
  }

 private:
  int number_;
};
void Run(const Task&) {}

const menger::Function& function = menger::FunctionOf<menger::FunctionCall<&Run>>();
