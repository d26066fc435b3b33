#include "menger/training/experiment.h"

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "menger/base/error.h"
#include "menger/training/toml_values.h"

namespace menger {
namespace {

// What the resolved configuration says of a value after this: where it comes from.
constexpr std::string_view kOriginMark = "  # from ";

// Of the value at a node: what its line says, if a resolved configuration is read.
std::string OriginOf(std::string_view toml, const toml::node& node) {
  if (toml.find(kOriginMark) == std::string_view::npos) return "the recipe";
  std::size_t begin = 0;
  for (toml::source_index line = 1; line < node.source().end.line; ++line) {
    begin = toml.find('\n', begin) + 1;
  }
  const std::string_view line = toml.substr(begin, toml.find('\n', begin) - begin);
  const std::size_t mark = line.rfind(kOriginMark);
  return std::string(mark == std::string_view::npos ? "" : line.substr(mark + kOriginMark.size()));
}

void Assign(Options& section, const Assignment& assignment) {
  section.SetFromText(assignment.name, assignment.text);
  section.SetOrigin(assignment.name, assignment.origin);
}

template <typename Component>
Options Declared(const std::string& section, Component& component) {
  Options options(section);
  component.Declare(options);
  return options;
}

}  // namespace

void EvaluationOptions::Declare(Options& options) {
  options.Add("every", &every,
              {.minimum = 0,
               .unit = "steps",
               .consequence = "steps between evaluations; 0 evaluates at the end only"});
  options.Add("episodes", &episodes,
              {.minimum = 1,
               .maximum = 100'000,
               .unit = "episodes",
               .consequence = "more give a surer mean and take longer"});
  options.Add("seed_offset", &seed_offset,
              {.minimum = 1,
               .maximum = 1e12,
               .consequence = "added to the seed for evaluation environments, so that they are "
                              "never the training ones"});
  options.Add("steps_max", &steps_max,
              {.minimum = 1,
               .unit = "steps",
               .consequence = "of an episode, where the environment has no time limit: it is cut "
                              "there, and that is said"});
  options.Add("stop_at_return", &stop_at_return,
              {.consequence = "ends training when two evaluations in a row reach it; inf: never"});
}

void CheckpointOptions::Declare(Options& options) {
  options.Add("every", &every,
              {.minimum = 0,
               .unit = "steps",
               .consequence = "steps between checkpoints: what a crash can cost; 0 goes by "
                              "checkpoint.seconds"});
  options.Add("seconds", &seconds,
              {.minimum = 0,
               .unit = "seconds",
               .consequence = "with every = 0, time between checkpoints, or 50 times what the last "
                              "one took to write where that is more"});
  options.Add("keep", &keep,
              {.minimum = 1,
               .maximum = 1000,
               .consequence = "how many of the newest checkpoints stay, beside the best"});
}

void ProgressOptions::Declare(Options& options) {
  options.Add("every", &every,
              {.minimum = 0,
               .unit = "steps",
               .consequence = "steps between rows of progress.csv; 0 writes about 200 rows a run"});
}

void WorkerOptions::Declare(Options& options) {
  options.Add("workers", &workers,
              {.minimum = 1,
               .maximum = 1024,
               .unit = "workers",
               .consequence = "that play episodes at once, with the same result; auto: every CPU"});
  options.Add("isolation", &isolation,
              {.choices = {"process", "thread"},
               .consequence = "what a worker is: a process that crashes is replaced, and what it "
                              "did is done again; threads start sooner"});
}

RuntimeOptions WorkerOptions::ForRuntime() const {
  return {.workers = static_cast<int>(workers.value),
          .isolation = isolation == "process" ? Isolation::kProcess : Isolation::kThread};
}

Assignment Assignment::Parse(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw InvalidArgument(
        "--set {}: it must read key=value or section.key=value, for example ppo.discount=0.98",
        argument);
  }
  const std::string_view key = argument.substr(0, equals);
  const std::size_t dot = key.find('.');
  const bool top_level = dot == std::string_view::npos;
  return {.section = std::string(top_level ? "" : key.substr(0, dot)),
          .name = std::string(top_level ? key : key.substr(dot + 1)),
          .text = std::string(argument.substr(equals + 1))};
}

Experiment::Experiment(std::string_view toml, const std::string& origin,
                       std::span<const Assignment> assignments, Algorithms algorithms,
                       const EnvironmentCatalog& environments)
    : environments_(environments) {
  const toml::table table = ParseToml(toml, origin);
  DeclareTopLevel();
  for (const auto& algorithm_entry : algorithms) {
    algorithm_names_.push_back(algorithm_entry->name());
  }

  // The algorithm decides which sections there are, so the top level comes first.
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (node.is_table() && !sections_[0].Contains(name)) continue;
    WithPlace(PlaceOf(origin, node), [&, &node = node] {
      sections_[0].Set(name, ToValue(node, PlaceOf(origin, node), name));
      sections_[0].SetOrigin(name, OriginOf(toml, node));
    });
  }
  for (const Assignment& assignment : assignments) {
    if (!assignment.section.empty()) continue;
    WithPlace(assignment.origin, [&] { Assign(sections_[0], assignment); });
  }
  if (environment.empty() || algorithm.empty()) {
    throw InvalidArgument("{}: '{}' is missing; a recipe names an environment and an algorithm",
                          origin, environment.empty() ? "environment" : "algorithm");
  }
  DeclareSections(std::move(algorithms));
  if (std::error_code error; family_ != nullptr && std::filesystem::exists(origin, error)) {
    family_->SetRecipeFolder(std::filesystem::absolute(origin).parent_path().string());
  }

  for (const auto& [key, node] : table) {
    if (!node.is_table()) continue;
    Options& section = Section(std::string(key.str()), PlaceOf(origin, node));
    for (const auto& [name, value] : *node.as_table()) {
      const std::string place = PlaceOf(origin, value);
      const std::string text(name.str());
      WithPlace(place, [&, &value = value] {
        section.Set(text, ToValue(value, origin, section.Key(text)));
        section.SetOrigin(text, OriginOf(toml, value));
      });
    }
  }
  for (const Assignment& assignment : assignments) {
    if (assignment.section.empty()) continue;
    Options& section = Section(assignment.section, assignment.origin);
    WithPlace(assignment.origin, [&] { Assign(section, assignment); });
  }
}

void Experiment::DeclareTopLevel() {
  Options top;
  top.Add("environment", &environment, {.consequence = "what is learned; see `menger list`"});
  top.Add("algorithm", &algorithm, {.consequence = "how it is learned; see `menger list`"});
  top.Add("steps", &steps,
          {.minimum = 1,
           .maximum = 1e15,
           .unit = "steps",
           .consequence = "environment steps in all; schedules and the run end here, with the "
                          "step of all environments that reaches it"});
  top.Add("seed", &seed,
          {.minimum = 0,
           .maximum = 1e15,
           .consequence = "the same seed and resolved configuration give the same run"});
  top.Add("device", &device,
          {.choices = {"cpu", "cuda"}, .consequence = "where networks learn and act"});
  top.Add("precision", &precision,
          {.choices = {"auto", "fp32", "bf16"},
           .consequence = "bf16 speeds up large networks; auto: bf16 for convolutions on cuda and "
                          "on processors with AVX512-BF16, else fp32"});
  top.Add("learner_threads", &learner_threads,
          {.minimum = 1,
           .maximum = 1024,
           .unit = "threads",
           .consequence =
               "threads that learn while collection pauses; auto: every CPU; where it goes on "
               "meanwhile (topology.kind), half of them"});
  sections_.push_back(std::move(top));
}

void Experiment::DeclareSections(Algorithms algorithms) {
  for (auto& candidate : algorithms) {
    if (candidate->name() == algorithm) entry_ = std::move(candidate);
  }
  if (entry_ == nullptr) {
    throw InvalidArgument("there is no algorithm '{}'{}; there are: {}", algorithm,
                          DidYouMean(algorithm, algorithm_names_),
                          fmt::join(algorithm_names_, ", "));
  }
  if (entry_->data_rule() == DataRule::kEpisodes) {
    sections_.push_back(Declared("runtime", runtime));
  } else {
    sections_.push_back(Declared("collector", collector));
  }
  sections_.push_back(Declared("network", network));
  sections_.push_back(Declared("optimiser", optimiser));
  sections_.push_back(Declared("transforms", transforms));
  sections_.push_back(Declared(algorithm, *entry_));
  if (entry_->data_rule() == DataRule::kBatches) {
    sections_.push_back(Declared("replay", replay));
    sections_.push_back(Declared("topology", topology));
  }
  family_ = environments_.FamilyOf(environment);
  if (family_ != nullptr) sections_.push_back(Declared(family_->name(), *family_));
  sections_.push_back(Declared("evaluation", evaluation));
  sections_.push_back(Declared("checkpoint", checkpoint));
  sections_.push_back(Declared("progress", progress));
}

EnvironmentEntry Experiment::OpenEnvironment(EnvironmentUse use) const {
  return environments_.Open(environment, use, family_.get());
}

EnvironmentRequest Experiment::RequestedEnvironment() const {
  EnvironmentRequest request{.name = environment};
  for (const Options& section : sections_) {
    if (family_ != nullptr && section.section() == family_->name())
      request.family = section.Texts();
  }
  return request;
}

Options& Experiment::Section(const std::string& name, const std::string& origin) {
  for (Options& section : sections_) {
    if (!section.section().empty() && section.section() == name) return section;
  }
  for (const std::string& other : algorithm_names_) {
    if (name != other) continue;
    throw InvalidArgument(
        "{}: section [{}] belongs to another algorithm; this experiment's is "
        "'{}', with section [{}]",
        origin, name, algorithm, algorithm);
  }
  for (const auto& family : environments_.Families()) {
    if (name != family->name()) continue;
    throw InvalidArgument("{}: section [{}] does nothing for environment {}; it belongs to {}",
                          origin, name, environment, family->description());
  }
  if (name == "replay" || name == "topology") {
    throw InvalidArgument(
        "{}: there is no section [{}] for '{}', which does not learn from replay: it is for those "
        "that do, as dqn and sac (`menger list`)",
        origin, name, algorithm);
  }
  const std::vector<std::string> names = SectionNames();
  throw InvalidArgument("{}: there is no section [{}]{}; there are: {}", origin, name,
                        DidYouMean(name, names), fmt::join(names, ", "));
}

std::vector<std::string> Experiment::SectionNames() const {
  std::vector<std::string> names;
  for (const Options& section : sections_) {
    if (!section.section().empty()) names.push_back(section.section());
  }
  return names;
}

std::string Experiment::ToToml(bool with_origins) const {
  std::string text;
  for (const Options& section : sections_) {
    if (!section.section().empty()) text += fmt::format("\n[{}]\n", section.section());
    for (const OptionEntry& entry : section.Entries()) {
      text += fmt::format("{} = {}", entry.name, TomlOf(entry.value));
      if (with_origins && !entry.origin.empty())
        text += fmt::format("{}{}", kOriginMark, entry.origin);
      text += '\n';
    }
  }
  return text;
}

std::vector<std::vector<OptionEntry>> CommonOptionTables() {
  // What stands in for the user's choice says that there must be one.
  static constexpr const char* kChoice = "(required)";
  class NoAlgorithm : public AlgorithmEntry {
   public:
    std::string name() const override { return kChoice; }
    std::string description() const override { return ""; }
    DataRule data_rule() const override { return DataRule::kBatches; }  // To have [replay].
    void Declare(Options&) override {}
    void Check(const EnvironmentSpec&) const override {}
    std::unique_ptr<Algorithm> Make(const AlgorithmContext&) const override { return nullptr; }
    std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext&) const override {
      return nullptr;
    }
  };
  Experiment::Algorithms algorithms;
  algorithms.push_back(std::make_unique<NoAlgorithm>());
  const EnvironmentCatalog environments;
  const Experiment experiment(fmt::format("environment = '{}'\nalgorithm = '{}'", kChoice, kChoice),
                              "describe", {}, std::move(algorithms), environments);
  std::vector<std::vector<OptionEntry>> tables;
  for (const Options& section : experiment.sections()) {
    if (section.section() != kChoice) tables.push_back(section.Entries());
  }
  WorkerOptions runtime;
  tables.push_back(Declared("runtime", runtime).Entries());
  return tables;
}

}  // namespace menger
