#include <fmt/format.h>

#include <memory>

#include "menger/cli/commands.h"

namespace menger {
namespace {

// Names come from the program itself each time, so completion knows new recipes at once.
constexpr const char* kBash =
    R"SCRIPT(# menger completion for bash: source <(menger completion bash)
_menger() {
  local sections="experiment collector network optimiser transforms evaluation checkpoint progress"
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=""
  case $previous in
    --device) words="cpu cuda" ;;
    --checkpoint) words="newest best" ;;
    --resume|--init-from|--out|--policy) COMPREPLY=($(compgen -f -- "$word")); return ;;
    train) words="$(menger list recipes --names 2>/dev/null)" ;;
    rollout) words="$(menger list environments --names 2>/dev/null)" ;;
    describe) words="$(menger list --names 2>/dev/null) $sections" ;;
    list) words="environments algorithms recipes" ;;
    completion) words="bash zsh fish" ;;
    evaluate) COMPREPLY=($(compgen -d -- "${word:-runs/}")); return ;;
    *) case ${COMP_WORDS[1]} in
         train) words="--set --resume --init-from --device --seed --seeds --out --help" ;;
         evaluate) words="--episodes --seed --checkpoint --help" ;;
         rollout) words="--policy --seed --steps --out --help" ;;
         *) words="train evaluate rollout list describe completion --version --help" ;;
       esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _menger menger
)SCRIPT";

constexpr const char* kZsh = R"SCRIPT(#compdef menger
# menger completion for zsh: source <(menger completion zsh)
autoload -U +X bashcompinit && bashcompinit
)SCRIPT";

constexpr const char* kFish = R"SCRIPT(# menger completion for fish: menger completion fish | source
complete -c menger -n __fish_use_subcommand -f -a "train evaluate rollout list describe completion"
complete -c menger -n "__fish_seen_subcommand_from train" -a "(menger list recipes --names)"
complete -c menger -n "__fish_seen_subcommand_from train" -l set -x -d "section.key=value"
complete -c menger -n "__fish_seen_subcommand_from train" -l resume -r -d "a run folder"
complete -c menger -n "__fish_seen_subcommand_from train" -l init-from -r -d "a run folder"
complete -c menger -n "__fish_seen_subcommand_from train" -l device -x -a "cpu cuda"
complete -c menger -n "__fish_seen_subcommand_from train" -l seed -x
complete -c menger -n "__fish_seen_subcommand_from train" -l seeds -x
complete -c menger -n "__fish_seen_subcommand_from train" -l out -r
complete -c menger -n "__fish_seen_subcommand_from evaluate" -l episodes -x
complete -c menger -n "__fish_seen_subcommand_from evaluate" -l seed -x
complete -c menger -n "__fish_seen_subcommand_from evaluate" -l checkpoint -x -a "newest best"
complete -c menger -n "__fish_seen_subcommand_from rollout" -a "(menger list environments --names)"
complete -c menger -n "__fish_seen_subcommand_from rollout" -l policy -r -a "random"
complete -c menger -n "__fish_seen_subcommand_from rollout" -l seed -x
complete -c menger -n "__fish_seen_subcommand_from rollout" -l steps -x
complete -c menger -n "__fish_seen_subcommand_from rollout" -l out -r
complete -c menger -n "__fish_seen_subcommand_from describe" -f -a "(menger list --names)"
complete -c menger -n "__fish_seen_subcommand_from describe" -f -a "experiment collector network"
complete -c menger -n "__fish_seen_subcommand_from describe" -f -a "optimiser transforms evaluation"
complete -c menger -n "__fish_seen_subcommand_from describe" -f -a "checkpoint progress"
complete -c menger -n "__fish_seen_subcommand_from list" -f -a "environments algorithms recipes"
complete -c menger -n "__fish_seen_subcommand_from completion" -f -a "bash zsh fish"
)SCRIPT";

}  // namespace

void AddCompletionCommand(CLI::App& app, CommandContext&) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for your shell");
  const auto shell = std::make_shared<std::string>();  // Shared with the callback.
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("\nExample:\n  source <(menger completion bash)");
  command->callback([shell] {
    if (*shell == "fish") {
      fmt::print("{}", kFish);
    } else {
      fmt::print("{}{}", *shell == "zsh" ? kZsh : "", kBash);
    }
  });
}

}  // namespace menger
