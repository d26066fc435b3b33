// error: Give it `template <class Archive> void Serialize(Archive& archive, T& value)
#include <map>

#include "menger/runtime/values/serialise.h"

struct Task {
  std::map<int, int> numbers;
};

std::size_t Size(const std::vector<Task>& tasks) { return menger::EncodedSize(tasks); }
