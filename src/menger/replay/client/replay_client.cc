#include "menger/replay/client/replay_client.h"

#include <fmt/ranges.h>

#include "menger/base/error.h"

namespace menger {

void CheckIndex(const char* what, int index, int count) {
  if (index >= 0 && index < count) return;
  throw InvalidArgument("{} {} was named, and there {} {}", what, index, count == 1 ? "is" : "are",
                        count);
}

int ReplayClient::Find(std::string_view name) const {
  std::vector<std::string> names;
  for (int i = 0; i < tables(); ++i) {
    if (table(i).name == name) return i;
    names.push_back(table(i).name);
  }
  throw NotFound("there is no replay table '{}'{}; there is {}", name, DidYouMean(name, names),
                 fmt::join(names, ", "));
}

}  // namespace menger
