#pragma once

#include <string>

namespace menger {

// The Python that runs environments.
struct Interpreter {
  std::string path;
  std::string where;  // A sentence that says which it is, why, and what would name another.
};

// `chosen` (the option host.python) where it is not "auto". Else the first there is of: what
// MENGER_PYTHON names; `found`, which this function has given before (a run remembers it); the
// activated virtual environment or conda environment, if it has gymnasium; the project's .venv;
// python3.
Interpreter FindInterpreter(const std::string& chosen, const std::string& found);

}  // namespace menger
