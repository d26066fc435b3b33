#include "menger/environments/hosted/hosted_environments.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "menger/base/error.h"
#include "menger/base/program_files.h"
#include "menger/environments/hosted/hosted_group.h"
#include "menger/environments/hosted/interpreter.h"

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

std::string HostedEnvironments::HintFor(std::string_view environment) const {
  if (!IsModule(environment)) return "";
  const std::size_t dot = environment.rfind('.');
  const std::string_view module = environment.substr(0, dot);
  const std::string_view name =
      dot == std::string_view::npos ? "NAME" : environment.substr(dot + 1);
  return fmt::format("'{}:{}' is the {} of a Python module {}", module, name,
                     dot == std::string_view::npos ? "class NAME" : name, module);
}

void HostedEnvironments::Declare(Options& options) {
  options.Add(
      "python", &python_,
      {.consequence =
           "the interpreter that runs the environments, with numpy and "
           "gymnasium; auto: MENGER_PYTHON, else the activated virtual environment or conda, "
           "else the project's .venv, else python3"});
  options.Add("python_found", &python_found_,
              {.consequence = "what auto has found: the run's record of it, so that evaluate and "
                              "resume take the same, unless MENGER_PYTHON names another"});
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
  options.Add(
      "path", &path_,
      {.consequence = "folders searched for modules, after the recipe's and the current one; the "
                      "run's record names all"});
  options.Add("vector", &vector_,
              {.consequence = "make a vector environment (gymnasium.vector) and step it as one "
                              "batch; it must reset in the same step"});
}

std::vector<std::string> HostedEnvironments::SearchPath() const {
  std::vector<std::string> folders = {fs::absolute(recipe_folder_).lexically_normal().string(),
                                      fs::current_path().string()};
  for (const std::string& folder : path_) {
    folders.push_back(fs::absolute(folder).lexically_normal().string());
  }
  std::vector<std::string> once;
  for (std::string& folder : folders) {
    if (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    if (std::find(once.begin(), once.end(), folder) == once.end()) once.push_back(folder);
  }
  return once;
}

void HostedEnvironments::ResolveDefaults() {
  path_ = SearchPath();
  if (python_ == "auto") python_found_ = FindInterpreter(python_, python_found_).path;
}

std::string HostedEnvironments::RequestFor(const std::string& environment,
                                           EnvironmentUse use) const {
  nlohmann::json request = {
      {"environment", environment}, {"metrics", metrics_}, {"vector", vector_}};
  if (use == EnvironmentUse::kRecording) request["render"] = true;
  request["path"] = SearchPath();
  if (!arguments_.empty()) {
    request["arguments"] = nlohmann::json::parse(arguments_, nullptr, /*allow_exceptions=*/false);
    if (!request["arguments"].is_object()) {
      throw InvalidArgument(
          "host.arguments = '{}' is not a JSON object; keyword arguments look like "
          "'{{\"size\": 5}}'",
          arguments_);
    }
  }
  return request.dump();
}

HostProgram HostedEnvironments::Program(const std::string& environment) const {
  const Interpreter python = FindInterpreter(python_, python_found_);
  return {.arguments = {python.path, "-m", "menger.host"},
          .variables = Variables(),
          .advice = python.where,
          .start_deadline_seconds = start_deadline_,
          .step_deadline_seconds = step_deadline_,
          .speaker = environment,
          .voice = voice_};
}

EnvironmentEntry HostedEnvironments::Open(const std::string& environment,
                                          EnvironmentUse use) const {
  HostProgram program = Program(environment);
  program.quiet = use != EnvironmentUse::kTraining;
  EnvironmentEntry entry = OpenHosted(program, RequestFor(environment, use));
  entry.spec.metrics = metrics_;
  entry.renders = use == EnvironmentUse::kRecording;
  return entry;
}

EnvironmentReport HostedEnvironments::Check(const std::string& environment) const {
  const std::string text =
      CheckHosted(Program(environment), RequestFor(environment, EnvironmentUse::kTraining));
  const auto said = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) throw FailedPrecondition("a host's report cannot be read: {}", text);
  EnvironmentReport report{.steps_per_second = said.value("speed", 0.0)};
  for (const auto& finding : said.value("findings", nlohmann::json::array())) {
    auto& list = finding.value("fault", true) ? report.faults : report.notes;
    list.push_back(finding.value("text", ""));
  }
  return report;
}

}  // namespace menger
