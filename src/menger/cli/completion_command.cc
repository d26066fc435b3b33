#include <fmt/format.h>

#include <memory>

#include "menger/cli/commands.h"

namespace menger {
namespace {

// Names come from the program itself each time, so completion knows new recipes at once.
constexpr const char* kBash =
    R"SCRIPT(# menger completion for bash: source <(menger completion bash)
_menger() {
  local sections="experiment collector runtime network optimiser transforms evaluation checkpoint progress atari host"
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words="" files=""
  # --option=value arrives as three words.
  if [[ $word == = ]]; then
    word=""
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case $previous in
    --device) words="cpu cuda" ;;
    --checkpoint) words="newest best" ;;
    --log) words="debug info warning error off" ;;
    --format) words="onnx bundle" ;;
    --metric) words="episode_return_mean evaluation_return_mean" ;;
    --policy) words="random" files=-f ;;
    --resume|--init-from) files=-d ;;
    --out|--record|--tls-certificate|--tls-key|--tls-authorities) files=-f ;;
    --set|--seed|--seeds|--side-by-side|--episodes|--steps|--threads|--fps|--address) return ;;
    train) words="$(menger list recipes --names 2>/dev/null)" files=-f ;;
    rollout|check) words="$(menger list environments --names 2>/dev/null)" ;;
    describe) words="$(menger list --names 2>/dev/null) $sections" ;;
    list) words="all environments algorithms recipes" ;;
    status) words="$(menger status --names 2>/dev/null)" ;;
    timeline) files=-f ;;
    completion) words="bash zsh fish" ;;
    replay) words="serve config info checkpoint" ;;
    serve|info|checkpoint) files=-f ;;
    config) words="$(menger list recipes --names 2>/dev/null)" files=-f ;;
    evaluate|export|plot) files=-d; [[ -z $word && -d runs ]] && word=runs/ ;;
    runs) files=-d ;;
  esac
  [[ ${COMP_WORDS[1]} == plot && -z $words$files ]] && files=-d  # One run after another.
  local cluster="--address --tls-certificate --tls-key --tls-authorities"
  if [[ $word == -* || -z $words$files ]]; then
    case ${COMP_WORDS[1]} in
      train) words="--set --resume --init-from --device --seed --seeds --side-by-side --out --quiet --help" ;;
      evaluate) words="--episodes --seed --threads --checkpoint --set --stochastic --device --record --fps --help" ;;
      check) words="--set --help" ;;
      export) words="--format --out --checkpoint --help" ;;
      plot) words="--out --metric --help" ;;
      runs) words="--json --names --help" ;;
      rollout) words="--policy --seed --steps --out --help" ;;
      list) words="--names --help" ;;
      status) words="--metrics --json --names $cluster --help" ;;
      timeline) words="$cluster --help" ;;
      replay)
        case ${COMP_WORDS[2]} in
          serve) words="--socket --help" ;;
          config) words="--set --help" ;;
          info) words="--watch --prometheus --help" ;;
          checkpoint) words="--timeout --help" ;;
          *) words="serve config info checkpoint --help" ;;
        esac ;;
      describe|completion) words="--help" ;;
      *) words="train evaluate export runs plot rollout list describe check status timeline replay completion --version --log --help" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY+=($(compgen $files -- "$word"))
  fi
}
complete -F _menger menger
)SCRIPT";

constexpr const char* kZsh = R"SCRIPT(#compdef menger
# menger completion for zsh: source <(menger completion zsh), or save it as _menger in fpath
_menger_recipes() {
  _alternative "recipes:recipe:($(menger list recipes --names 2>/dev/null))" 'files:file:_files'
}
_menger_policies() {
  _alternative 'policies:policy:(random)' 'files:run folder or file of actions:_files'
}
_menger() {
  local context state state_descr line
  local -A opt_args
  local -a cluster=('--address[of a cluster]:HOST\:PORT of its head:' '--tls-certificate[of this process]:file:_files'
    '--tls-key[of that certificate]:file:_files' '--tls-authorities[of the cluster]:file:_files')
  local -a help=('(- *)'{-h,--help}'[explain the command]') commands=(
    'train:Train a policy from a recipe'
    'evaluate:Play greedy episodes with a trained policy'
    'export:Write a trained policy as one file'
    'runs:List runs'
    'plot:Draw the learning curves of runs'
    'rollout:Step one environment and write a CSV'
    'list:List the environments, algorithms and recipes'
    'describe:Explain an environment, an algorithm, a recipe or a section'
    'check:Say what is wrong with a Python environment'
    'status:Look at a running job of the runtime'
    'timeline:Write what a running job did last, as a trace'
    'replay:Serve replay to other processes, and look at servers'
    'completion:Print a completion script'
  )
  _arguments -C $help '(- *)--version[print what this program was built from]' \
    '--log[how much to say]:level:(debug info warning error off)' \
    '1:command:{_describe command commands}' '*::argument:->argument' && return
  [[ $state == argument ]] || return 1
  case $words[1] in
    train)
      _arguments $help '*--set[change an option]:section.key=value:' \
        '--resume[go on with a run]:run folder:_files -/' \
        '--init-from[start with the parameters of a run]:run folder:_files -/' \
        '--device[where to learn]:device:(cpu cuda)' '--seed[the seed of the run]:seed:' \
        '--seeds[train so many seeds]:number:' '--side-by-side[so many of them at a time]:number:' \
        '--out[the run folder]:run folder:_files -/' '--quiet[show no progress and no outcome]' \
        '1:recipe:_menger_recipes' ;;
    evaluate)
      _arguments $help '--episodes[how many]:number:' '--seed[the first seed]:seed:' \
        '--threads[share the episodes]:number:' '--checkpoint[which, or its number of steps]:checkpoint:(newest best)' \
        '*--set[change an option]:section.key=value:' '--stochastic[draw actions as while training]' \
        '--device[where to act]:device:(cpu cuda)' '--record[write a film]:file:_files' '--fps[steps a second of the film]:number:' \
        '1:run folder:_files -/' ;;
    export)
      _arguments $help '--format[onnx, or for C and Python]:format:(onnx bundle)' '--out[where to]:file:_files' \
        '--checkpoint[which, or its number of steps]:checkpoint:(newest best)' '1:run folder:_files -/' ;;
    runs)
      _arguments $help '(--names)--json[for programs]' '(--json)--names[paths alone]' '1:folder:_files -/' ;;
    plot)
      _arguments $help '--out[the picture]:file:_files' \
        '--metric[a column of progress.csv]:column:(episode_return_mean evaluation_return_mean)' '*:run folder:_files -/' ;;
    rollout)
      _arguments $help '--seed[the seed]:seed:' '--steps[how many]:number:' \
        '--policy[who acts]:policy:_menger_policies' \
        '--out[the file to write]:file:_files' \
        '1:environment:($(menger list environments --names 2>/dev/null))' ;;
    list)
      _arguments $help '--names[names alone]' '1:kind:(all environments algorithms recipes)' ;;
    describe)
      _arguments $help '1:name:($(menger list --names 2>/dev/null) experiment collector runtime network
        optimiser transforms evaluation checkpoint progress atari host)' ;;
    check)
      _arguments $help '*--set[change an option]:host.key=value:' \
        '1:environment:($(menger list environments --names 2>/dev/null))' ;;
    status)
      _arguments $help $cluster '(--json --names)--metrics[as Prometheus reads it]' '(--metrics --names)--json[as JSON]' \
        '(--metrics --json)--names[names of the jobs alone]' '1:job:($(menger status --names 2>/dev/null))' ;;
    timeline)
      _arguments $help $cluster '1:file to write:_files' '2:job:($(menger status --names 2>/dev/null))' ;;
    replay)
      _arguments $help '1:what:(serve config info checkpoint)' '*:file:_menger_recipes' ;;
    completion) _arguments $help '1:shell:(bash zsh fish)' ;;
  esac
}
if [[ $funcstack[1] == _menger ]]; then
  _menger "$@"  # Loaded from fpath, in the middle of the first completion.
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _menger menger
fi
)SCRIPT";

constexpr const char* kFish = R"SCRIPT(# menger completion for fish: menger completion fish | source
# Whether the line so far has one of these commands; without arguments, whether it has none yet.
function __menger_command
  set -l commands train evaluate export runs plot rollout list describe check status timeline replay completion
  for word in (commandline -opc)[2..]
    if contains -- $word $commands
      test (count $argv) -gt 0; and contains -- $word $argv
      return
    end
  end
  test (count $argv) -eq 0
end
complete -c menger -f
complete -c menger -s h -l help -d "explain the command"
complete -c menger -n __menger_command -l version -d "what this program was built from"
complete -c menger -n __menger_command -l log -x -a "debug info warning error off"
complete -c menger -n __menger_command -a train -d "Train a policy from a recipe"
complete -c menger -n __menger_command -a evaluate -d "Play greedy episodes with a policy"
complete -c menger -n __menger_command -a export -d "Write a trained policy as one file"
complete -c menger -n __menger_command -a runs -d "List runs"
complete -c menger -n __menger_command -a plot -d "Draw the learning curves of runs"
complete -c menger -n __menger_command -a rollout -d "Step one environment and write a CSV"
complete -c menger -n __menger_command -a list -d "List environments, algorithms and recipes"
complete -c menger -n __menger_command -a describe -d "Explain one of them, or a section"
complete -c menger -n __menger_command -a check -d "Say what is wrong with an environment"
complete -c menger -n __menger_command -a status -d "Look at a running job of the runtime"
complete -c menger -n __menger_command -a replay -d "Serve replay to other processes"
complete -c menger -n __menger_command -a timeline -d "Write what a running job did last"
complete -c menger -n __menger_command -a completion -d "Print a completion script"
complete -c menger -n "__menger_command train" -F -a "(menger list recipes --names 2>/dev/null)"
complete -c menger -n "__menger_command train evaluate check" -l set -x -d "section.key=value"
complete -c menger -n "__menger_command train" -l resume -x -a "(__fish_complete_directories)"
complete -c menger -n "__menger_command train" -l init-from -x -a "(__fish_complete_directories)"
complete -c menger -n "__menger_command train evaluate" -l device -x -a "cpu cuda"
complete -c menger -n "__menger_command train evaluate rollout" -l seed -x
complete -c menger -n "__menger_command train" -l seeds -x -d "train so many seeds"
complete -c menger -n "__menger_command train" -l side-by-side -x -d "so many of the seeds at a time"
complete -c menger -n "__menger_command train" -l quiet -d "show no progress and no outcome"
complete -c menger -n "__menger_command train" -l out -x -a "(__fish_complete_directories)"
complete -c menger -n "__menger_command evaluate" -a "(__fish_complete_directories)"
complete -c menger -n "__menger_command evaluate" -l episodes -x
complete -c menger -n "__menger_command evaluate" -l threads -x
complete -c menger -n "__menger_command evaluate export" -l checkpoint -x -a "newest best"
complete -c menger -n "__menger_command evaluate" -l stochastic -d "draw actions as in training"
complete -c menger -n "__menger_command evaluate" -l record -r -F
complete -c menger -n "__menger_command evaluate" -l fps -x
complete -c menger -n "__menger_command export runs plot" -a "(__fish_complete_directories)"
complete -c menger -n "__menger_command export" -l format -x -a "onnx bundle"
complete -c menger -n "__menger_command export plot" -l out -r -F
complete -c menger -n "__menger_command plot" -l metric -x -a "episode_return_mean evaluation_return_mean"
complete -c menger -n "__menger_command runs" -l json -d "for programs"
complete -c menger -n "__menger_command runs" -l names -d "paths alone, one a line"
complete -c menger -n "__menger_command rollout" -a "(menger list environments --names 2>/dev/null)"
complete -c menger -n "__menger_command rollout" -l policy -r -F -a random
complete -c menger -n "__menger_command rollout" -l steps -x
complete -c menger -n "__menger_command rollout" -l out -r -F
complete -c menger -n "__menger_command list" -a "all environments algorithms recipes"
complete -c menger -n "__menger_command list" -l names -d "names alone, one a line"
complete -c menger -n "__menger_command describe" -a "(menger list --names 2>/dev/null)"
complete -c menger -n "__menger_command describe" -a "experiment collector runtime network optimiser"
complete -c menger -n "__menger_command describe" -a "transforms evaluation checkpoint progress atari host"
complete -c menger -n "__menger_command check" -a "(menger list environments --names 2>/dev/null)"
complete -c menger -n "__menger_command status" -a "(menger status --names 2>/dev/null)"
complete -c menger -n "__menger_command status" -l metrics -d "as Prometheus reads it"
complete -c menger -n "__menger_command status" -l json -d "as JSON"
complete -c menger -n "__menger_command status" -l names -d "names of the jobs alone, one a line"
complete -c menger -n "__menger_command status timeline" -l address -x -d "of a cluster: HOST:PORT of its head"
complete -c menger -n "__menger_command status timeline" -l tls-certificate -r -F -d "of this process"
complete -c menger -n "__menger_command status timeline" -l tls-key -r -F -d "of that certificate"
complete -c menger -n "__menger_command status timeline" -l tls-authorities -r -F -d "of the cluster"
complete -c menger -n "__menger_command timeline" -F -a "(menger status --names 2>/dev/null)"
complete -c menger -n "__menger_command replay" -F -a "serve config info checkpoint (menger list recipes --names 2>/dev/null)"
complete -c menger -n "__menger_command completion" -a "bash zsh fish"
)SCRIPT";

}  // namespace

void AddCompletionCommand(CLI::App& app, CommandContext&) {
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for your shell");
  const auto shell = std::make_shared<std::string>();  // Shared with the callback.
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(
      "\nExamples:\n"
      "  source <(menger completion bash)       in .bashrc; for zsh the same with zsh, in .zshrc\n"
      "  menger completion fish | source        in config.fish");
  command->callback([shell] {
    fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
  });
}

}  // namespace menger
