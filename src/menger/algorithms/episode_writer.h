#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "menger/algorithms/observation_encoder.h"
#include "menger/algorithms/own_errors.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/environments/environment.h"

namespace menger {

// What of a decision replay keeps.
struct StepOptions {
  bool reads_frames = true;           // The network does: see ObservationEncoder.
  std::optional<double> reward_clip;  // Rewards are clipped to +- this before they are stored.
  int state_width = 0;                // Floats of the recurrent state that a policy carries.
};

// What a recipe says of them, for a policy without a state. Throws InvalidArgument for transforms
// that replay cannot have.
StepOptions StepsFor(const AlgorithmContext& context);

// Steps of replay: one encoded observation (not stacked; the numbers beside an image are a leaf of
// their own), the action taken on it, and the reward and `terminated` that the action caused; then,
// where there are such, the action mask, those numbers, and the recurrent state with which the
// policy came to the observation. At an episode's end the final observation follows as one more
// step without an action, so every frame is stored once. Immutable; any thread.
class StepFormat {
 public:
  // Throws InvalidArgument for observations that cannot be encoded and for more than one action
  // leaf.
  StepFormat(const EnvironmentSpec& environment, const StepOptions& options);

  // Leaves "observation", "action", "reward" (float32), "terminated" (uint8), and where there are
  // such the mask (kActionMask), "vector" and "state" (float32 both).
  const Spec& steps() const { return steps_; }
  const StepOptions& options() const { return options_; }
  bool has_mask() const { return frame_.mask_leaf() >= 0; }
  bool has_vector() const { return frame_.vector_elements() > 0; }
  bool has_state() const { return options_.state_width > 0; }
  const ObservationEncoder& frame() const { return frame_; }  // One observation, not stacked.

 private:
  StepOptions options_;
  ObservationEncoder frame_;
  Spec steps_;
};

// Writes the episodes of each environment as a stream of steps; a subclass says which of them are
// items.
class EpisodeWriter : public SlabWriter {
 public:
  void Write(const Slab& slab, const Deadline& deadline) final;
  ReplayWriter& writer() final { return *writer_; }
  void Save(ArchiveWriter archive) const final;
  void Load(ArchiveReader archive) final;

 protected:
  // Where the stream of one environment stands, by the numbers of its steps.
  struct Stream {
    std::int64_t episode_begin = 0;  // First step of the episode.
    std::int64_t next_item = 0;      // First decision that has no item yet; the subclass's.
    bool open = false;               // The last step was a decision of an episode that goes on.
  };

  // `history`: how many steps an item reaches back, the newest one included. `errors`: null, or
  // what gives items their priorities. Borrows the format.
  EpisodeWriter(const StepFormat& format, int history, const SlabWriterContext& context,
                std::unique_ptr<OwnErrors> errors);

  const OwnErrors* errors() const { return errors_.get(); }  // Null: there are none.

  // Adds an item, a range a column. Without a priority at the highest.
  void Add(int environment, std::span<const StepRange> columns, std::optional<double> priority) {
    writer_->Add(environment, table_, priority, columns);
  }

 private:
  // Adds the items that are complete with `last`, the newest step, and moves next_item on. `ended`:
  // it is the episode's final observation, after which every decision has had its item.
  virtual void AddItems(Stream& stream, std::int64_t last, bool ended, int environment) = 0;

  // What follows the observation in a step: by default that of a final one, where nothing was done.
  struct Caused {
    const std::byte* action = nullptr;
    float reward = 0;
    std::uint8_t terminated = 0;
    const std::byte* mask = nullptr;   // Null: there are none.
    const std::byte* state = nullptr;  // Null: zeros.
  };

  void WriteRow(const Slab& slab, int row, int environment);
  void FlushWhatIsLeft(const Deadline& deadline);

  // Each appends one step and returns its number: a decision with what it caused; the final
  // observation that is kept aside; the observation of a row, as a final one.
  std::int64_t AppendDecision(const Slab& slab, int row, int position, int environment);
  std::int64_t AppendFinal(const Slab& slab, int row, int position, int environment);
  std::int64_t AppendObservation(const Slab& slab, int row, int position, int environment);
  std::int64_t Append(const Caused& caused, std::int64_t version, int environment);

  void EndEpisode(Stream& stream, std::int64_t final_step, int environment);

  // What shows the observation of the step that is being put together.
  EncodedRows frame() { return {.image = image_.data(), .numbers = numbers_.data()}; }

  const StepFormat& format_;
  const int table_;
  const std::unique_ptr<OwnErrors> errors_;
  std::vector<Stream> streams_;  // By environment.
  struct {
    int environment = 0;
    int row = 0;
    bool written = false;                       // The row was, and may have to be flushed.
    bool awaits = false;                        // All rows were.
  } at_;                                        // Of the slab that is being written.
  const std::unique_ptr<ReplayWriter> writer_;  // A stream an environment.
  std::vector<std::byte> image_;
  std::vector<float> numbers_;
  std::vector<std::byte> no_action_;  // Zeros, for final observations.
  std::vector<std::byte> no_state_;   // Zeros: an episode's start.
};

}  // namespace menger
