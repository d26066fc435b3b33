// What of an Experiment nobody has set: how it is filled in, and what cannot go together.
#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "menger/base/error.h"
#include "menger/base/thread.h"
#include "menger/networks/kernels/bf16.h"
#include "menger/training/experiment.h"

namespace menger {
namespace {

// How the origin of an algorithm's own default begins.
constexpr std::string_view kDefaultsOf = "the defaults of ";

// With replay, learning starts after one part in so many of a run.
constexpr std::int64_t kRunsStart = 20;

// The value of an option that there may be.
std::int64_t IntegerOr(const Options& options, const char* name, std::int64_t otherwise) {
  if (!options.Contains(name)) return otherwise;
  const OptionValue value = options.Get(name);
  const auto* const number = std::get_if<std::int64_t>(&value);
  return number == nullptr ? otherwise : *number;
}

}  // namespace

void Experiment::ApplyDefaults(const EnvironmentSpec& spec) {
  const std::string origin = fmt::format("{}{} for it", kDefaultsOf, algorithm);
  for (const OptionDefault& value : entry_->Defaults(spec, steps)) {
    Section(value.section, "defaults").SetDefault(value.name, value.value, origin);
  }
  FitMinibatch();
  if (entry_->data_rule() == DataRule::kBatches) FitReplay();
}

// An update would take all rows at once without a word: nobody would see that the setting has no
// effect.
void Experiment::FitMinibatch() {
  Options& section = Section(algorithm, "defaults");
  if (!section.Contains("minibatch_size")) return;
  const auto size = std::get<std::int64_t>(section.Get("minibatch_size"));
  const std::int64_t rows = collector.environments * collector.horizon;
  if (size <= rows) return;
  const std::string origin = section.Origin("minibatch_size");
  if (origin.starts_with(kDefaultsOf)) {
    section.Set("minibatch_size", rows);
    return;
  }
  const bool default_horizon =
      Section("collector", "defaults").Origin("horizon").starts_with(kDefaultsOf);
  throw InvalidArgument(
      "{} = {} is more than an update learns from: collector.environments = {} x "
      "collector.horizon = {}{} are {} steps; set it to {} at most, or collect more for an update",
      section.Key("minibatch_size"), size, collector.environments, collector.horizon,
      default_horizon ? fmt::format(" (the default for steps = {})", steps) : "", rows, rows);
}

// A run that makes no update would not say so before its end.
void Experiment::FitReplay() {
  Options& section = Section("replay", "defaults");
  const Options& own = Section(algorithm, "defaults");
  // Of each environment the last decisions are kept when their n steps are over, and sequences when
  // they are whole.
  const std::int64_t rows = IntegerOr(own, "sequence_length", 1);
  const std::int64_t open = IntegerOr(own, "n_step", 1) + rows - 1;
  const std::int64_t all = std::max<std::int64_t>(1, collector.environments);
  const std::int64_t collected = (steps + all - 1) / all * all;
  const std::int64_t kept = collected - all * open;
  if (kept < 1) return;  // No setting would be right: the run's end says that nothing was learned.
  const auto is_default = [&](const char* name) {
    const std::string& origin = section.Origin(name);
    return origin.empty() || origin.starts_with(kDefaultsOf);
  };
  if (replay.min_size > kept && is_default("min_size")) {
    section.Set("min_size", std::max<std::int64_t>(1, std::min(kept, steps / kRunsStart)));
    section.SetOrigin("min_size", fmt::format("{}{} for it", kDefaultsOf, algorithm));
  } else if (replay.min_size > kept) {
    throw InvalidArgument(
        "replay.min_size = {} is more than a run of steps = {} puts into replay: learning would "
        "never start; set it to {} at most, or train longer",
        replay.min_size, steps, kept);
  }
  const std::int64_t slab = std::max<std::int64_t>(1, all * collector.horizon);
  const std::int64_t learned =
      std::max<std::int64_t>(0, collected - (replay.min_size + all * open - 1) / slab * slab);
  if (static_cast<double>(learned) * replay.training_intensity >=
          static_cast<double>(replay.batch_size * rows) ||
      (is_default("min_size") && is_default("training_intensity") && is_default("batch_size"))) {
    return;
  }
  throw InvalidArgument(
      "with replay.min_size = {} learning starts {} steps before the end of steps = {}; at "
      "replay.training_intensity = {} these are less than an update of replay.batch_size = {}{}: "
      "set "
      "one of them lower or the intensity higher, or train longer",
      replay.min_size, learned, steps, replay.training_intensity, replay.batch_size,
      rows > 1 ? fmt::format(" x {}.sequence_length = {}", algorithm, rows) : "");
}

void Experiment::NoteChosen(std::string_view section, std::string_view name) {
  for (Options& options : sections_) {
    if (options.section() == section) options.SetOrigin(name, "what fits this machine");
  }
}

void Experiment::ResolveDefaults() {
  if (precision == "auto") {
    // With AVX512-BF16, learning from 256 to 1024 stacks of frames takes 29 to 43% of the time that
    // fp32 takes and acting on 8 to 64 takes 22 to 40% (EPYC, 1 and 2 threads, bench_cnn), and each
    // layer's gradient points the same way: cosine above .99, as with libtorch's bf16. Without it
    // the CPU would have to emulate bf16.
    const bool convolutional = network.reads_frames();
    precision = convolutional && (device == "cuda" || HasAvx512Bf16()) ? "bf16" : "fp32";
    NoteChosen("", "precision");
  }
  if (family_ != nullptr) family_->ResolveDefaults();
  const auto use_cpus = [this](AutoInt& option, const char* section, const char* name, int count) {
    if (!option.is_auto) return;
    option = {.value = count, .is_auto = false};
    NoteChosen(section, name);
  };
  use_cpus(runtime.workers, "runtime", "workers", AvailableCpus());
  // In a pipeline others are busy meanwhile.
  use_cpus(learner_threads, "", "learner_threads",
           topology.is_pipeline() ? std::max(1, AvailableCpus() / 2) : AvailableCpus());
}

}  // namespace menger
