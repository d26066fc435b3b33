#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/memory_need.h"
#include "menger/cli/commands.h"

namespace menger {
namespace {

constexpr const char* kExamples = R"(
Start here:
  menger list                                    what there is to train
  menger train cartpole_ppo                      learn to balance a pole, in seconds
  menger train cartpole_ppo --set ppo.clip=0.1   the same with one option changed
  menger describe ppo                            every option, with its default and what it does
  menger evaluate runs/cartpole_ppo-1            how good the result is
  menger train --resume runs/cartpole_ppo-1      go on where it stopped
  menger runs                                    what was trained, and how well it does
  menger export runs/cartpole_ppo-1              a file that acts without this program
  menger rollout CartPole-v1 --out trace.csv     what an environment does, step by step

A command's own page: menger train --help. Completion: source <(menger completion bash)
)";

int ExitCodeOf(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound ? 2 : 1;
}

// What to say of a line that CLI11 refused; an unknown command it would call a missing one.
std::string TextOf(const CLI::ParseError& error, const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (!app.get_subcommands().empty() || extras.empty() || extras[0].starts_with('-')) {
    return fmt::format("{} (see `menger --help`)", error.what());
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return fmt::format("there is no command '{}'{}; there are: {}", extras[0],
                     DidYouMean(extras[0], names), fmt::join(names, ", "));
}

int Report(const std::string& text, int exit_code) {
  std::string line = text;
  // One line, so that programs can read it; but what a host process printed is for people.
  if (!HasBlock(text)) std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "menger: error: {}\n", line);
  return exit_code;
}

}  // namespace

int RunProgram(int argc, const char* const* argv, const EnvironmentCatalog& environments) {
  CommandContext context{.environments = environments, .program = argv[0]};
  CLI::App app("Menger: trains policies by reinforcement learning.", "menger");
  app.footer(kExamples);
  app.set_version_flag(
      "--version", [] { return ToString(ThisBuild()); }, "Print what this program was built from");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();

  std::string log_level = "info";
  app.add_option("--log", log_level, "How much to say: debug, info, warning, error, off");
  // Before the command's own callback, which does the work.
  app.parse_complete_callback([&] { SetUpLogging(LogLevelFromName(log_level)); });

  AddTrainCommand(app, context);
  AddEvaluateCommand(app, context);
  AddExportCommand(app, context);
  AddRolloutCommand(app, context);
  AddRunsCommand(app, context);
  AddPlotCommand(app, context);
  AddListCommand(app, context);
  AddDescribeCommand(app, context);
  AddCheckCommand(app, context);
  AddNodeCommand(app, context);
  AddStatusCommand(app, context);
  AddTimelineCommand(app, context);
  AddReplayCommand(app, context);
  AddCompletionCommand(app, context);
  try {
    WithMemoryFor([&] { return fmt::format("what `menger {}` does", argc > 1 ? argv[1] : ""); },
                  [&] { app.parse(argc, argv); });
    return context.exit_code;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version.
    return Report(TextOf(error, app), 2);
  } catch (...) {
    const Error error = TranslateCurrentException();
    return Report(error.what(), ExitCodeOf(error.code()));
  }
}

}  // namespace menger
