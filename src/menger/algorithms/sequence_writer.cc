#include "menger/algorithms/sequence_writer.h"

#include <algorithm>
#include <array>
#include <string>

#include "menger/algorithms/action_space.h"
#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kStepsMax = 10'000;  // An item's rows are counted in 16 bits.

StepOptions WithState(const AlgorithmContext& context, int state_width) {
  StepOptions options = StepsFor(context);
  options.state_width = state_width;
  return options;
}

}  // namespace

void SequenceOptions::Declare(Options& options) {
  options.Add("sequence_length", &length,
              {.minimum = 1,
               .maximum = kStepsMax,
               .unit = "steps",
               .consequence = "decisions of an item that are learned from: the network learns to "
                              "remember over so many"});
  options.Add("sequence_overlap", &overlap,
              {.minimum = 0,
               .maximum = kStepsMax,
               .unit = "steps",
               .consequence = "of them, those that the item before has, too; below the length"});
  options.Add("burn_in", &burn_in,
              {.minimum = 0,
               .maximum = kStepsMax,
               .unit = "steps",
               .consequence = "decisions before them that the network is shown first, so that what "
                              "it remembers is no longer what older parameters left there"});
  options.Add("n_step", &n_step,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "steps",
               .consequence = "rewards seen before the value function is asked: more learns "
                              "faster, and from what old policies did"});
}

SequenceFormat::SequenceFormat(const SequenceOptions& options, const AlgorithmContext& context,
                               int state_width)
    : options_(options), steps_(context.environment, WithState(context, state_width)) {
  if (options.overlap >= options.length) {
    throw InvalidArgument(
        "sequence_overlap = {} is not below sequence_length = {}: a sequence would begin where the "
        "one before did",
        options.overlap, options.length);
  }
  if (context.transforms.frame_stack != 1) {
    throw InvalidArgument(
        "transforms.frame_stack = {}, but sequences show one observation a step: set it to 1, the "
        "network remembers those before",
        context.transforms.frame_stack);
  }
  items_.steps = steps_.steps();
  items_.columns = {{.name = "observation", .leaf = "observation", .rows = burn_in() + steps() + 1},
                    {.name = "action", .leaf = "action", .rows = length()},
                    {.name = "reward", .leaf = "reward", .rows = steps()},
                    {.name = "terminated", .leaf = "terminated"}};
  if (has_state()) items_.columns.push_back({.name = "state", .leaf = "state"});
  if (has_mask()) {
    items_.columns.push_back(
        {.name = "mask", .leaf = std::string(kActionMask), .rows = steps() + 1});
  }
  if (has_vector()) {
    items_.columns.push_back({.name = "vector", .leaf = "vector", .rows = burn_in() + steps() + 1});
  }
  items_.Check();
}

void SequenceWriter::AddItems(Stream& stream, std::int64_t last, bool ended, int environment) {
  const int overlap = format_.length() - format_.period();
  const auto is_due = [&] {
    if (!ended) return last - stream.next_item == format_.steps();
    const bool first = stream.next_item == stream.episode_begin;
    return stream.next_item + (first ? 0 : overlap) < last;
  };
  while (is_due()) {
    AddItem(stream, last, environment);
    stream.next_item += format_.period();
  }
}

void SequenceWriter::AddItem(const Stream& stream, std::int64_t last, int environment) {
  const std::int64_t window = stream.next_item;
  const std::int64_t begin = std::max(stream.episode_begin, window - format_.burn_in());
  const std::int64_t next = std::min<std::int64_t>(window + format_.steps(), last);
  const int steps = static_cast<int>(next - window);
  const StepRange shown{.first = begin, .count = static_cast<int>(next - begin) + 1};
  std::array<StepRange, 7> ranges = {
      shown, StepRange{.first = window, .count = std::min(steps, format_.length())},
      StepRange{.first = window, .count = steps}, StepRange{.first = next - 1, .count = 1}};
  std::size_t count = 4;
  if (format_.has_state()) ranges[count++] = StepRange{.first = begin, .count = 1};
  if (format_.has_mask()) ranges[count++] = StepRange{.first = window, .count = steps + 1};
  if (format_.has_vector()) ranges[count++] = shown;
  std::optional<double> priority;
  if (errors() != nullptr) {
    priority = PriorityOf(environment, window, std::min(steps, format_.length()), next);
  }
  Add(environment, std::span(ranges).first(count), priority);
}

double SequenceWriter::PriorityOf(int environment, std::int64_t window, int decisions,
                                  std::int64_t last) const {
  double largest = 0;
  double sum = 0;
  for (int i = 0; i < decisions; ++i) {
    const double error = errors()->Of(environment, window + i, last);
    largest = std::max(largest, error);
    sum += error;
  }
  return mix_ * largest + (1 - mix_) * sum / decisions + kPriorityMin;
}

}  // namespace menger
