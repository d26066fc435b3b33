#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "menger/environments/catalog.h"

namespace menger {

constexpr std::int64_t kSeedMax = 1'000'000'000'000'000;  // As in recipes.

// What every command may use. Outlives the parsing of the command line.
struct CommandContext {
  const EnvironmentCatalog& environments;
  std::string program;  // As it was called: for the commands that texts tell the user to type.
  int exit_code = 0;    // Set by the command that ran.
};

// Each adds one command to the program; its callback does the work when the line is parsed. Results
// go to standard output, everything else to standard error.
void AddTrainCommand(CLI::App& app, CommandContext& context);
void AddEvaluateCommand(CLI::App& app, CommandContext& context);
void AddExportCommand(CLI::App& app, CommandContext& context);
void AddRolloutCommand(CLI::App& app, CommandContext& context);
void AddRunsCommand(CLI::App& app, CommandContext& context);
void AddPlotCommand(CLI::App& app, CommandContext& context);
void AddListCommand(CLI::App& app, CommandContext& context);
void AddDescribeCommand(CLI::App& app, CommandContext& context);
void AddCheckCommand(CLI::App& app, CommandContext& context);
void AddNodeCommand(CLI::App& app, CommandContext& context);
void AddStatusCommand(CLI::App& app, CommandContext& context);
void AddTimelineCommand(CLI::App& app, CommandContext& context);
void AddReplayCommand(CLI::App& app, CommandContext& context);
void AddCompletionCommand(CLI::App& app, CommandContext& context);

// Runs the program: parses the line, does the work, and turns errors into one line on standard
// error. Returns the exit status: 0; 2 for what the user must change (InvalidArgument, NotFound);
// 1 for other errors; 128 + signal for a run that was interrupted.
int RunProgram(int argc, const char* const* argv, const EnvironmentCatalog& environments);

}  // namespace menger
