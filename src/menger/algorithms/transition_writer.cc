#include "menger/algorithms/transition_writer.h"

#include <algorithm>
#include <array>
#include <string>

#include "menger/algorithms/action_space.h"

namespace menger {

TransitionOptions TransitionsFor(int n_step, const AlgorithmContext& context) {
  return {.n_step = n_step,
          .frame_stack = static_cast<int>(context.transforms.frame_stack),
          .steps = StepsFor(context)};
}

TransitionFormat::TransitionFormat(const EnvironmentSpec& environment,
                                   const TransitionOptions& options)
    : options_(options), steps_(environment, options.steps) {
  // Refuses what cannot be stacked.
  const ObservationEncoder stacked(environment.observation, options.frame_stack,
                                   options.steps.reads_frames);
  items_.steps = steps_.steps();
  items_.columns = {
      {.name = "observation",
       .leaf = "observation",
       .rows = options.frame_stack,
       .padding = Padding::kFront},
      {.name = "action", .leaf = "action"},
      {.name = "reward", .leaf = "reward", .rows = options.n_step, .padding = Padding::kBack},
      {.name = "terminated", .leaf = "terminated"},
      {.name = "next_observation",
       .leaf = "observation",
       .rows = options.frame_stack,
       .padding = Padding::kFront}};
  if (has_mask()) items_.columns.push_back({.name = "next_mask", .leaf = std::string(kActionMask)});
  if (has_vector()) {
    for (const char* const name : {"vector", "next_vector"}) {
      items_.columns.push_back({.name = name,
                                .leaf = "vector",
                                .rows = options.frame_stack,
                                .padding = Padding::kFront});
    }
  }
  items_.Check();
}

void TransitionWriter::AddItems(Stream& stream, std::int64_t last, bool ended, int environment) {
  while (stream.next_item < last &&
         (ended || last - stream.next_item == format_.options().n_step)) {
    AddItem(stream, last, environment);
  }
}

void TransitionWriter::AddItem(Stream& stream, std::int64_t last, int environment) {
  const std::int64_t decision = stream.next_item++;
  const std::int64_t next = std::min<std::int64_t>(decision + format_.options().n_step, last);
  const auto stack = [&](std::int64_t newest) {
    const std::int64_t oldest =
        std::max(stream.episode_begin, newest - format_.options().frame_stack + 1);
    return StepRange{.first = oldest, .count = static_cast<int>(newest - oldest + 1)};
  };
  std::array<StepRange, 8> ranges = {
      stack(decision), StepRange{.first = decision, .count = 1},
      StepRange{.first = decision, .count = static_cast<int>(next - decision)},
      StepRange{.first = next - 1, .count = 1}, stack(next)};
  std::size_t count = 5;
  if (format_.has_mask()) ranges[count++] = StepRange{.first = next, .count = 1};
  if (format_.has_vector()) {
    ranges[count++] = stack(decision);
    ranges[count++] = stack(next);
  }
  std::optional<double> priority;
  if (errors() != nullptr) priority = errors()->Of(environment, decision, last) + kPriorityMin;
  Add(environment, std::span(ranges).first(count), priority);
}

}  // namespace menger
