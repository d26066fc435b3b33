#pragma once

#include <string>

#include "menger/base/options.h"
#include "menger/environments/environment.h"

namespace menger {

// An environment by name and by its family's options: what another process of the program needs to
// make the same one.
struct EnvironmentRequest {
  std::string name;
  OptionTexts family;  // Empty where it has none.

  template <typename Archive>
  void Serialize(Archive& archive) {
    archive(name, family);
  }
};

// Makes it for training: one that is written in C++ or a MuJoCo task, which step in the process
// that asks. Throws NotFound for any other.
EnvironmentEntry OpenForWorker(const EnvironmentRequest& request);

}  // namespace menger
