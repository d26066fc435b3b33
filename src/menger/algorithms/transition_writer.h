#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "menger/algorithms/observation_encoder.h"
#include "menger/algorithms/replay_algorithm.h"
#include "menger/environments/environment.h"

namespace menger {

// What transitions are made of.
struct TransitionOptions {
  int n_step = 1;
  int frame_stack = 1;
  bool reads_frames = true;           // The network does: see ObservationEncoder.
  std::optional<double> reward_clip;  // Rewards are clipped to +- this before they are stored.
};

// What a recipe says of them. Throws InvalidArgument for transforms that replay cannot have.
TransitionOptions TransitionsFor(int n_step, const AlgorithmContext& context);

// Steps and items of n-step transitions, for algorithms that learn from single decisions (the DQN
// family, SAC, TD3). Immutable; any thread.
//
// A step holds one encoded observation (not stacked; the numbers beside an image are a leaf of
// their own), the action taken on it, and the reward and `terminated` that the action caused. At an
// episode's end the final observation follows as one more step without an action, so every frame is
// stored once.
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

  const ItemSpec& items() const { return items_; }
  const TransitionOptions& options() const { return options_; }
  bool has_mask() const { return frame_.mask_leaf() >= 0; }
  bool has_vector() const { return frame_.vector_elements() > 0; }
  const ObservationEncoder& frame() const { return frame_; }  // One observation, not stacked.

 private:
  TransitionOptions options_;
  ObservationEncoder frame_;
  ItemSpec items_;
};

// Writes n-step transitions.
class TransitionWriter final : public SlabWriter {
 public:
  // `format` outlives the writer.
  TransitionWriter(const TransitionFormat& format, const SlabWriterContext& context);

  void Write(const Slab& slab, const Deadline& deadline) override;
  ReplayWriter& writer() override { return *writer_; }
  void Save(ArchiveWriter archive) const override;
  void Load(ArchiveReader archive) override;

 private:
  // Where the stream of one environment stands, by the numbers of its steps.
  struct Stream {
    std::int64_t episode_begin = 0;  // First step of the episode.
    std::int64_t next_item = 0;      // First decision that has no item yet.
    bool open = false;               // The last step was a decision of an episode that goes on.
  };

  // What follows the observation in a step: by default that of a final one, where nothing was done.
  struct Caused {
    const std::byte* action = nullptr;
    float reward = 0;
    std::uint8_t terminated = 0;
    const std::byte* mask = nullptr;  // Null: there are none.
  };

  void WriteRow(const Slab& slab, int row, int environment);

  // Each appends one step and returns its number: a decision with what it caused; the final
  // observation that is kept aside; the observation of a row, as a final one.
  std::int64_t AppendDecision(const Slab& slab, int row, int position, int environment);
  std::int64_t AppendFinal(const Slab& slab, int row, int position, int environment);
  std::int64_t AppendObservation(const Slab& slab, int row, int position, int environment);
  std::int64_t Append(const Caused& caused, std::int64_t version, int environment);

  // Adds the items of all decisions that have none, and ends the stream's episode.
  void EndEpisode(Stream& stream, std::int64_t final_step, int environment);
  // Adds the item of the next decision; `last` is the newest step.
  void AddItem(Stream& stream, std::int64_t last, int environment);

  const TransitionFormat& format_;
  const int table_;
  std::vector<Stream> streams_;                 // By environment.
  const std::unique_ptr<ReplayWriter> writer_;  // A stream an environment.

  // What shows the observation of the step that is being put together.
  EncodedRows frame() { return {.image = image_.data(), .numbers = numbers_.data()}; }

  std::vector<std::byte> image_;
  std::vector<float> numbers_;
  std::vector<std::byte> no_action_;  // Zeros, for final observations.
};

}  // namespace menger
