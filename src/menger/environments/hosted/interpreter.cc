#include "menger/environments/hosted/interpreter.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "menger/base/program_files.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "MENGER_PYTHON";

// Without starting the interpreter, which takes longer than everything else here.
bool HasGymnasium(const fs::path& prefix) {
  std::error_code error;
  for (const auto& version : fs::directory_iterator(prefix / "lib", error)) {
    if (fs::exists(version.path() / "site-packages" / "gymnasium", error)) return true;
  }
  std::ifstream settings(prefix / "pyvenv.cfg");
  for (std::string line; std::getline(settings, line);) {
    if (line == "include-system-site-packages = true") return true;  // It may be there.
  }
  return false;
}

}  // namespace

Interpreter FindInterpreter(const std::string& chosen, const std::string& found) {
  const auto it_is = [](const std::string& path, const std::string& note) -> Interpreter {
    return {.path = path,
            .where = fmt::format("It ran in {} ({} or host.python names another).{}", path,
                                 kVariable, note)};
  };
  if (chosen != "auto") {
    return {.path = chosen, .where = fmt::format("It ran in {}, as host.python says.", chosen)};
  }
  if (const std::string named = Variable(kVariable); !named.empty()) {
    return {.path = named,
            .where = fmt::format("It ran in {}, as {} says (host.python goes before).", named,
                                 kVariable)};
  }
  std::error_code error;
  if (!found.empty() && fs::exists(found, error)) return it_is(found, "");
  std::string note;
  for (const char* const activated : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = Variable(activated);
    const fs::path python = fs::path(prefix) / "bin" / "python";
    if (prefix.empty() || !fs::exists(python, error)) continue;
    if (HasGymnasium(prefix)) return it_is(python.string(), "");
    note += fmt::format(" {} is {}, which has no gymnasium and is not used.", activated, prefix);
  }
  const std::string own =
      FindBesideProgram(kVariable, "../../.venv/bin/python", MENGER_HOST_PYTHON);
  return it_is(own.empty() ? "python3" : own, note);
}

}  // namespace menger
