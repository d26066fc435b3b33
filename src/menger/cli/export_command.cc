#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/cli/commands.h"
#include "menger/policies/bundle.h"
#include "menger/policies/onnx_file.h"
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

std::vector<std::pair<std::string, std::string>> AboutOf(const ExportArguments& arguments,
                                                         const TrainedRun& run) {
  return {
      {"run", arguments.run},
      {"checkpoint", run.checkpoint},
      {"environment", run.experiment->environment},
      {"algorithm", run.experiment->algorithm},
      {"network", run.experiment->network.kind},
      {"precision", run.experiment->precision},
      {"build", ToString(ThisBuild())},
  };
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
  const std::string name = format == "onnx" ? "policy.onnx" : "policy.menger";
  const std::string path =
      !arguments.out.empty()
          ? arguments.out
          : (std::filesystem::path(arguments.run) / name).lexically_normal().string();
  const auto about = AboutOf(arguments, run);
  std::string bytes;
  if (format == "onnx") {
    bytes = OnnxOf(policy, about);
  } else {
    nlohmann::ordered_json json;
    for (const auto& [key, value] : about) json[key] = value;
    bytes = BundleOf(policy, json.dump());
  }
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
  command
      ->add_option("--format", arguments->format,
                   "onnx, or bundle: for C and Python; default: onnx if --out ends so, else bundle")
      ->check(CLI::IsMember({"bundle", "onnx"}))
      ->type_name("WHICH");
  command
      ->add_option("--out", arguments->out,
                   "Where to; default: policy.onnx or policy.menger in the run folder")
      ->type_name("PATH");
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "newest, best (by the evaluations during training), or a number of steps")
      ->type_name("WHICH");
  command->footer(
      "\nExamples:\n"
      "  menger export runs/cartpole_ppo-1 --out cartpole.menger\n"
      "  menger export runs/pong_ppo-1 --format onnx --checkpoint best\n\n"
      "The names of what goes in and out, and how C and Python act with it: docs/policies.md.");
  command->callback([arguments, &context] { ExportCommand(*arguments, context); });
}

}  // namespace menger
