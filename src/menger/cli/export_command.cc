#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/cli/commands.h"
#include "menger/policies/bundle.h"
#include "menger/training/run.h"

namespace menger {
namespace {

struct ExportArguments {
  std::string run;
  std::string format;
  std::string out;
  std::string checkpoint = "newest";
};

// What --format says; else what the name of the file does.
std::string FormatOf(const ExportArguments& arguments) {
  if (!arguments.format.empty()) return arguments.format;
  return arguments.out.ends_with(".onnx") ? "onnx" : "bundle";
}

std::string AboutOf(const ExportArguments& arguments, const TrainedRun& run) {
  const nlohmann::ordered_json about = {
      {"run", arguments.run},
      {"checkpoint", run.checkpoint},
      {"environment", run.experiment->environment},
      {"algorithm", run.experiment->algorithm},
      {"network", run.experiment->network.kind},
      {"precision", run.experiment->precision},
      {"build", ToString(ThisBuild())},
  };
  return about.dump();
}

std::string ToText(const LeafSpec& leaf) {
  std::string text = fmt::format("{}: {} {}", leaf.name, NameOf(leaf.dtype), ToString(leaf.shape));
  if (!leaf.counts.empty()) text += fmt::format(" below {}", fmt::join(leaf.counts, ", "));
  return text;
}

void ExportCommand(const ExportArguments& arguments, const CommandContext& context) {
  // Where it was trained there may be a device that is not here; the parameters are the same.
  const std::vector<Assignment> assignments = {{"", "device", "cpu", "export"}};
  const TrainedRun run =
      LoadRun(arguments.run, arguments.checkpoint, context.environments, assignments);
  const PolicyDescription policy = run.algorithm->DescribePolicy();
  const std::string format = FormatOf(arguments);
  const std::string path =
      !arguments.out.empty()
          ? arguments.out
          : (std::filesystem::path(arguments.run) / "policy.menger").lexically_normal().string();
  const std::string bytes = BundleOf(policy, AboutOf(arguments, run));
  WriteFileAtomically(path, bytes);
  fmt::print("{}: {:.1f} KB, from {}\n", path, static_cast<double>(bytes.size()) / 1000,
             run.checkpoint);
  for (const LeafSpec& leaf : policy.observation) fmt::print("reads {}\n", ToText(leaf));
  fmt::print("gives {}\n", ToText(policy.action));
}

}  // namespace

void AddExportCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "export", "Write a trained policy as one file that acts without this program");
  const auto arguments = std::make_shared<ExportArguments>();  // Shared with the callback.
  command->add_option("run", arguments->run, "A run folder")->type_name("RUN")->required();
  command->add_option("--format", arguments->format, "bundle; default: what --out ends with")
      ->check(CLI::IsMember({"bundle"}))
      ->type_name("WHICH");
  command->add_option("--out", arguments->out, "Where to; default: policy.menger in the run folder")
      ->type_name("PATH");
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "newest, best (by the evaluations during training), or a number of steps")
      ->type_name("WHICH");
  command->footer(
      "\nExamples:\n"
      "  menger export runs/cartpole_ppo-1 --out cartpole.menger\n\n"
      "What is in the file, and how C and Python act with it: docs/policies.md.");
  command->callback([arguments, &context] { ExportCommand(*arguments, context); });
}

}  // namespace menger
