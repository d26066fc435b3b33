#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/program_files.h"
#include "menger/cli/commands.h"

namespace menger {
namespace {

struct PlotArguments {
  std::vector<std::string> runs;
  std::string out;
  std::string metric = "episode_return_mean";
};

// Becomes `python -m menger.plot`: its output, its errors and its exit status are the command's.
void PlotCommand(const PlotArguments& arguments) {
  const std::string folder =
      FindBesideProgram("MENGER_PYTHON_FOLDER", "../../python", MENGER_SOURCE_PYTHON_FOLDER);
  if (folder.empty()) {
    throw FailedPrecondition(
        "curves are drawn by the folder 'python', which is neither where menger was built nor "
        "beside the program; MENGER_PYTHON_FOLDER names another place");
  }
  std::string python =
      FindBesideProgram("MENGER_PYTHON", "../../.venv/bin/python", MENGER_BUILD_PYTHON);
  if (python.empty()) python = "python3";
  const std::string others = Variable("PYTHONPATH");
  setenv("PYTHONPATH", (others.empty() ? folder : folder + ":" + others).c_str(), /*overwrite=*/1);
  std::vector<std::string> line = {python,        "-m",       "menger.plot",    "--out",
                                   arguments.out, "--metric", arguments.metric, "--"};
  line.insert(line.end(), arguments.runs.begin(), arguments.runs.end());
  std::vector<char*> words;
  for (std::string& word : line) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(stdout);
  execvp(words[0], words.data());
  throw FromErrno(fmt::format("cannot run '{}', which draws the curves", python), errno);
}

}  // namespace

void AddPlotCommand(CLI::App& app, CommandContext& /*context*/) {
  CLI::App* command = app.add_subcommand("plot", "Draw the learning curves of runs");
  const auto arguments = std::make_shared<PlotArguments>();  // Shared with the callback.
  command->add_option("runs", arguments->runs, "Run folders, or folders of runs")
      ->type_name("RUN...")
      ->required();
  command->add_option("--out", arguments->out, "The picture")
      ->type_name("FILE.png|.svg")
      ->required();
  command->add_option("--metric", arguments->metric, "A column of progress.csv")->type_name("NAME");
  command->footer(
      "\nExamples:\n"
      "  menger plot runs/cartpole_ppo-1 runs/cartpole_a2c-1 --out curves.png\n"
      "  menger plot runs/cartpole_ppo-2 --metric evaluation_return_mean --out seeds.svg\n\n"
      "Runs that differ in nothing but their seed are one curve, with a band from the smallest to\n"
      "the largest of them; over seconds, a point lies where they on the average had made its\n"
      "steps. Needs matplotlib: the first call installs it into .venv.");
  command->callback([arguments] { PlotCommand(*arguments); });
}

}  // namespace menger
