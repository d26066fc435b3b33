#pragma once

#include <cstdint>

#include "menger/algorithms/episode_writer.h"
#include "menger/environments/environment.h"

namespace menger {

// What transitions are made of.
struct TransitionOptions {
  int n_step = 1;
  int frame_stack = 1;
  StepOptions steps = {};
};

// What a recipe says of them. Throws InvalidArgument for transforms that replay cannot have.
TransitionOptions TransitionsFor(int n_step, const AlgorithmContext& context);

// Steps and items of n-step transitions, for algorithms that learn from single decisions (the DQN
// family, SAC, TD3). Immutable; any thread.
//
// An item of a decision t is the stack of observations that it saw, the action, the k rewards from
// it on, and what was seen after them: k = n, or fewer where the episode ended (each of its last n
// decisions has an item). `terminated` says that nothing follows; a time limit does not set it.
class TransitionFormat {
 public:
  // Columns of items(), in order. [rows] x shape of a row:
  static constexpr int kObservation = 0;      // [frame_stack] x frame, zeros before the episode.
  static constexpr int kAction = 1;           // The environment's only action leaf.
  static constexpr int kReward = 2;           // float32 [n_step], as many rows as were taken.
  static constexpr int kTerminated = 3;       // uint8.
  static constexpr int kNextObservation = 4;  // As kObservation.
  static constexpr int kNextMask = 5;         // uint8 [actions]; only where has_mask().
  // Only where has_vector(): the numbers beside the images, stacked as those are.
  int vector_column() const { return has_mask() ? 6 : 5; }
  int next_vector_column() const { return vector_column() + 1; }

  // Throws InvalidArgument for observations that cannot be encoded or stacked, and for more than
  // one action leaf.
  TransitionFormat(const EnvironmentSpec& environment, const TransitionOptions& options);

  const StepFormat& steps() const { return steps_; }
  const ItemSpec& items() const { return items_; }
  const TransitionOptions& options() const { return options_; }
  bool has_mask() const { return steps_.has_mask(); }
  bool has_vector() const { return steps_.has_vector(); }
  const ObservationEncoder& frame() const { return steps_.frame(); }

 private:
  TransitionOptions options_;
  StepFormat steps_;
  ItemSpec items_;
};

// Writes n-step transitions.
class TransitionWriter final : public EpisodeWriter {
 public:
  // `format` outlives the writer.
  TransitionWriter(const TransitionFormat& format, const SlabWriterContext& context,
                   std::unique_ptr<OwnErrors> errors = nullptr)
      : EpisodeWriter(format.steps(), HistoryOf(format), context, std::move(errors)),
        format_(format) {}

  // How many steps an item reaches back, the newest included.
  static int HistoryOf(const TransitionFormat& format) {
    return format.options().n_step + format.options().frame_stack;
  }

 private:
  void AddItems(Stream& stream, std::int64_t last, bool ended, int environment) override;
  // Adds the item of the next decision; `last` is the newest step.
  void AddItem(Stream& stream, std::int64_t last, int environment);

  const TransitionFormat& format_;
};

}  // namespace menger
