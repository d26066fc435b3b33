// For function_test.cc and runtime_actors_test.cc, which have a function and a class of the same
// names.

#include "menger/runtime/runtime.h"

namespace menger {
namespace {

class Namesake {
 public:
  int File() { return 2; }
};

}  // namespace

int FileOfNamesake(Runtime& runtime, const std::string& name);

int FileOfNamesake(Runtime& runtime, const std::string& name) {
  return runtime.Get(runtime.GetActor<Namesake>(name).Call<&Namesake::File>());
}

const Function& SameNameInAnotherFile();

static int SameName(int number) { return number; }

const Function& SameNameInAnotherFile() { return FunctionOf<FunctionCall<&SameName>>(); }

}  // namespace menger
