#include "menger/environments/hosted/hosted_environments.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "menger/base/error.h"
#include "menger/environments/hosted/hosted_group.h"

namespace menger {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "host:";
constexpr const char* kFolderVariable = "MENGER_PYTHON_FOLDER";
constexpr const char* kLibraryVariable = "MENGER_HOST_LIBRARY";

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "package.module", as Python names modules.
bool IsModule(std::string_view text) {
  bool start = true;
  for (const char c : text) {
    if (start && (!IsWord(c) || std::isdigit(static_cast<unsigned char>(c)) != 0)) return false;
    if (!start && !IsWord(c) && c != '.') return false;
    start = c == '.';
  }
  return !start;
}

// "CartPole-v1", "ALE/Pong-v5", "phys2d/Pendulum-v0".
bool LooksLikeGymnasiumId(std::string_view text) {
  const std::size_t version = text.rfind("-v");
  if (version == std::string_view::npos || version == 0 || version + 2 == text.size()) return false;
  const std::string_view digits = text.substr(version + 2);
  return std::all_of(digits.begin(), digits.end(),
                     [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }) &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(version),
                     [](char c) { return IsWord(c) || c == '/' || c == '.' || c == '-'; });
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The first that exists of: what the variable says, the place relative to the running program, the
// place where this was built; "" if there is none.
std::string FindBesideProgram(const char* variable, const fs::path& relative, const char* built) {
  if (std::string chosen = Variable(variable); !chosen.empty()) return chosen;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& path : {program.parent_path() / relative, fs::path(built)}) {
    if (fs::exists(path, error)) return fs::absolute(path, error).lexically_normal().string();
  }
  return "";
}

std::string Interpreter(const std::string& chosen) {
  if (chosen != "auto") return chosen;
  const std::string own =
      FindBesideProgram("MENGER_PYTHON", "../../.venv/bin/python", MENGER_HOST_PYTHON);
  return own.empty() ? "python3" : own;
}

std::vector<std::pair<std::string, std::string>> Variables() {
  const std::string folder = FindBesideProgram(kFolderVariable, "../../python", MENGER_HOST_FOLDER);
  const std::string library =
      FindBesideProgram(kLibraryVariable, "libmenger_host.so", MENGER_HOST_LIBRARY_FILE);
  if (folder.empty() || library.empty()) {
    throw FailedPrecondition(
        "Python environments need the folder 'python' and libmenger_host.so, which are neither "
        "where menger was built nor beside the program; {} and {} name other places",
        kFolderVariable, kLibraryVariable);
  }
  const std::string path = Variable("PYTHONPATH");
  std::vector<std::pair<std::string, std::string>> variables = {
      {"PYTHONPATH", path.empty() ? folder : folder + ":" + path},
      {kLibraryVariable, library},
      {"PYTHONUNBUFFERED", "1"},    // What a host prints must be there when it dies,
      {"PYTHONFAULTHANDLER", "1"},  // and where it was.
      {"PYGAME_HIDE_SUPPORT_PROMPT", "1"}};
  // Many hosts share the cores: none gains by threads of its own.
  for (const char* const name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    if (Variable(name).empty()) variables.emplace_back(name, "1");
  }
  return variables;
}

}  // namespace

std::string HostedEnvironments::description() const {
  return "Python environments: any Gymnasium id, or package.module:Name";
}

std::vector<std::string> HostedEnvironments::examples() const {
  return {"host:CartPole-v1", "FrozenLake-v1", "my_package.my_module:MyEnvironment"};
}

bool HostedEnvironments::Serves(std::string_view environment) const {
  if (environment.starts_with(kPrefix)) return environment.size() > kPrefix.size();
  const std::size_t colon = environment.find(':');
  if (colon == std::string_view::npos) return LooksLikeGymnasiumId(environment);
  return colon + 1 < environment.size() && IsModule(environment.substr(0, colon));
}

void HostedEnvironments::Declare(Options& options) {
  options.Add("python", &python_,
              {.consequence = "the interpreter that runs the environments, with numpy and "
                              "gymnasium; auto: the project's .venv, else python3"});
  options.Add("arguments", &arguments_,
              {.consequence = "keyword arguments of the environment, as JSON: '{\"size\": 5}'"});
  options.Add("step_deadline", &step_deadline_,
              {.minimum = 0,
               .above_minimum = true,
               .unit = "seconds",
               .consequence = "an environment that takes longer for a step counts as hung"});
  options.Add("start_deadline", &start_deadline_,
              {.minimum = 0,
               .above_minimum = true,
               .unit = "seconds",
               .consequence = "how long starting a host and making its environments may take"});
  options.Add("metrics", &metrics_,
              {.consequence = "numbers in `info` at the end of episodes to report, by name"});
  options.Add("path", &path_,
              {.consequence = "folders searched for modules, besides the current one"});
  options.Add("vector", &vector_,
              {.consequence = "make a vector environment (gymnasium.vector) and step it as one "
                              "batch; it must reset in the same step"});
}

EnvironmentEntry HostedEnvironments::Open(const std::string& environment,
                                          EnvironmentUse use) const {
  nlohmann::json request = {
      {"environment", environment}, {"metrics", metrics_}, {"vector", vector_}};
  if (use == EnvironmentUse::kRecording) request["render"] = true;
  request["path"] = nlohmann::json::array({fs::current_path().string()});
  for (const std::string& folder : path_) request["path"].push_back(fs::absolute(folder).string());
  if (!arguments_.empty()) {
    request["arguments"] = nlohmann::json::parse(arguments_, nullptr, /*allow_exceptions=*/false);
    if (!request["arguments"].is_object()) {
      throw InvalidArgument(
          "host.arguments = '{}' is not a JSON object; keyword arguments look like "
          "'{{\"size\": 5}}'",
          arguments_);
    }
  }
  const std::string python = Interpreter(python_);
  const HostProgram program{
      .arguments = {python, "-m", "menger.host"},
      .variables = Variables(),
      .advice = fmt::format("It ran in {} (host.python names another interpreter).", python),
      .start_deadline_seconds = start_deadline_,
      .step_deadline_seconds = step_deadline_,
      .quiet = use != EnvironmentUse::kTraining};
  EnvironmentEntry entry = OpenHosted(program, request.dump());
  entry.spec.metrics = metrics_;
  entry.renders = use == EnvironmentUse::kRecording;
  return entry;
}

}  // namespace menger
