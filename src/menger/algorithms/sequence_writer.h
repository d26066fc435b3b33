#pragma once

#include <cstdint>

#include "menger/algorithms/episode_writer.h"
#include "menger/base/options.h"
#include "menger/environments/environment.h"

namespace menger {

// Options of sequences. Defaults are those of Kapturowski et al. 2019.
struct SequenceOptions {
  std::int64_t length = 80;   // Decisions to learn from.
  std::int64_t overlap = 40;  // Of them, those that the sequence before has, too.
  std::int64_t burn_in = 40;  // Decisions before them that the network remembers by.
  std::int64_t n_step = 5;

  // As sequence_length, sequence_overlap, burn_in and n_step.
  void Declare(Options& options);
};

// Steps and items of sequences, for algorithms that learn with a memory. Immutable; any thread.
//
// An episode is cut into windows of `length` decisions, each beginning length - overlap after the
// one before; windows that the episode's end cuts short are items as long as they have a decision
// that no window before has. An item is what a network must see to learn from the decisions of a
// window: up to `burn_in` observations before it (fewer near the episode's start), those of the
// window, and those of up to `n_step` more steps, the last of which may be the final one. No item
// reaches across an episode's end.
class SequenceFormat {
 public:
  // Columns of items(), in order, rows that an item lacks padded behind:
  static constexpr int kObservation = 0;  // [burn_in + steps() + 1] x frame.
  static constexpr int kAction = 1;       // [length], the window's.
  static constexpr int kReward = 2;       // float32 [steps()], from the window's first decision on.
  static constexpr int kTerminated = 3;   // uint8: nothing follows the last reward.
  // Of the first observation shown: float32 [state_width]. Only where has_state().
  int state_column() const { return 4; }
  // From the window's first observation on: uint8 [steps() + 1, actions]. Only where has_mask().
  int mask_column() const { return has_state() ? 5 : 4; }
  // As kObservation. Only where has_vector().
  int vector_column() const { return mask_column() + (has_mask() ? 1 : 0); }

  // Throws InvalidArgument as StepFormat, for stacks of frames, and for an overlap that is not
  // below the length. `state_width` of the network.
  SequenceFormat(const SequenceOptions& options, const AlgorithmContext& context, int state_width);

  const ItemSpec& items() const { return items_; }
  const StepFormat& format() const { return steps_; }
  bool has_mask() const { return steps_.has_mask(); }
  bool has_vector() const { return steps_.has_vector(); }
  bool has_state() const { return steps_.has_state(); }

  int length() const { return static_cast<int>(options_.length); }
  int burn_in() const { return static_cast<int>(options_.burn_in); }
  int n_step() const { return static_cast<int>(options_.n_step); }
  int period() const { return static_cast<int>(options_.length - options_.overlap); }
  // From a window's first observation to the last one that a return of its decisions asks for.
  int steps() const { return length() + n_step() - 1; }

 private:
  SequenceOptions options_;
  StepFormat steps_;
  ItemSpec items_;
};

// Writes sequences.
class SequenceWriter final : public EpisodeWriter {
 public:
  // `format` outlives the writer. A sequence's priority is `mix` x its largest error + the rest x
  // their mean, where there are errors.
  SequenceWriter(const SequenceFormat& format, const SlabWriterContext& context,
                 std::unique_ptr<OwnErrors> errors = nullptr, double mix = 1)
      : EpisodeWriter(format.format(), HistoryOf(format), context, std::move(errors)),
        format_(format),
        mix_(mix) {}

  // How many steps an item reaches back, the newest included.
  static int HistoryOf(const SequenceFormat& format) {
    return format.burn_in() + format.steps() + 1;
  }

 private:
  void AddItems(Stream& stream, std::int64_t last, bool ended, int environment) override;
  // Adds the item whose window begins at the stream's next_item; `last` is the newest step.
  void AddItem(const Stream& stream, std::int64_t last, int environment);

  // Of the decisions from `window` on, by errors of returns up to `last`.
  double PriorityOf(int environment, std::int64_t window, int decisions, std::int64_t last) const;

  const SequenceFormat& format_;
  const double mix_;
};

}  // namespace menger
