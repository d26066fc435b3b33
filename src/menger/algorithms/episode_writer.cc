#include "menger/algorithms/episode_writer.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "menger/algorithms/action_space.h"

namespace menger {
namespace {

// Until items are flushed their writer holds their chunks: a bound on how many, whatever the slabs.
constexpr int kRowsHeld = 64;

LeafSpec Named(LeafSpec leaf, std::string name) {
  leaf.name = std::move(name);
  return leaf;
}

LeafSpec Floats(std::string name, int count) {
  LeafSpec leaf = LeafSpec::Scalar(std::move(name), DataType::kFloat32);
  leaf.shape = {count};
  return leaf;
}

}  // namespace

StepOptions StepsFor(const AlgorithmContext& context) {
  const TransformOptions& transforms = context.transforms;
  StepOptions options{.reads_frames = context.network.reads_frames(), .reward_clip = {}};
  for (const std::string& transform : transforms.apply) {
    if (transform == "normalise_reward") {
      throw InvalidArgument(
          "transforms.apply has normalise_reward, whose scale would be another when a batch is "
          "drawn than when it was stored; with replay rewards can only be clipped (clip_reward)");
    }
    if (transform == "clip_reward") options.reward_clip = transforms.reward_clip;
  }
  return options;
}

StepFormat::StepFormat(const EnvironmentSpec& environment, const StepOptions& options)
    : options_(options), frame_(environment.observation, /*frame_stack=*/1, options.reads_frames) {
  std::vector<LeafSpec> leaves = {Named(frame_.encoded(), "observation"),
                                  Named(OnlyAction(environment), "action"),
                                  LeafSpec::Scalar("reward", DataType::kFloat32),
                                  LeafSpec::Scalar("terminated", DataType::kUint8)};
  if (has_mask()) leaves.push_back(environment.observation[frame_.mask_leaf()]);
  if (has_vector()) leaves.push_back(Floats("vector", frame_.vector_elements()));
  if (has_state()) leaves.push_back(Floats("state", options.state_width));
  steps_ = Spec(std::move(leaves));
}

EpisodeWriter::EpisodeWriter(const StepFormat& format, int history,
                             const SlabWriterContext& context, std::unique_ptr<OwnErrors> errors)
    : format_(format),
      table_(context.table),
      errors_(std::move(errors)),
      streams_(context.environments),
      writer_(context.replay.NewWriter(format.steps(),
                                       {.chunk_steps = context.chunk_steps,
                                        .history = history,
                                        .compression = context.compression},
                                       context.environments)),
      image_(format.frame().image_bytes()),
      numbers_(static_cast<std::size_t>(format.frame().numbers())),
      no_action_(format.steps()[1].bytes()),
      no_state_(sizeof(float) * static_cast<std::size_t>(format.options().state_width)) {}

void EpisodeWriter::Write(const Slab& slab, const Deadline& deadline) {
  if (at_.awaits) FlushWhatIsLeft(deadline);
  for (; at_.environment < slab.columns().columns(); ++at_.environment, at_.row = 0) {
    for (; at_.row < slab.horizon(); ++at_.row, at_.written = false) {
      if (!at_.written) WriteRow(slab, at_.row, at_.environment);
      at_.written = true;
      const bool last = at_.row + 1 == slab.horizon();
      if (last || (at_.row + 1) % kRowsHeld == 0) writer_->Flush(at_.environment, deadline);
    }
  }
  at_.awaits = true;
  writer_->Await(deadline);
  at_ = {};
}

// A writer to a server hears only then of what could not be inserted in time.
void EpisodeWriter::FlushWhatIsLeft(const Deadline& deadline) {
  for (int environment = 0; environment < writer_->streams(); ++environment) {
    if (writer_->pending(environment) > 0) writer_->Flush(environment, deadline);
  }
}

void EpisodeWriter::Save(ArchiveWriter archive) const {
  std::vector<std::int64_t> numbers;  // Three a stream.
  for (const Stream& stream : streams_) {
    numbers.insert(numbers.end(), {stream.episode_begin, stream.next_item, stream.open ? 1 : 0});
  }
  archive.Write("streams", numbers);
}

void EpisodeWriter::Load(ArchiveReader archive) {
  std::vector<std::int64_t> numbers(3 * streams_.size());
  archive.Read("streams", std::span(numbers));
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    streams_[i] = {.episode_begin = numbers[3 * i],
                   .next_item = numbers[3 * i + 1],
                   .open = numbers[3 * i + 2] != 0};
  }
}

void EpisodeWriter::WriteRow(const Slab& slab, int row, int environment) {
  const int position = slab.columns().PositionOf(environment);
  const bool valid = slab.valid(row)[position] != 0;
  Stream& stream = streams_[environment];
  // A collector that was made anew: what its predecessor's last action led to was never seen.
  if (slab.is_first(row)[position] != 0) stream.open = false;
  if (!stream.open) {
    if (!valid) return;
    stream.episode_begin = stream.next_item = writer_->steps(environment);
  }
  if (!valid) {  // The environment failed here, after it had shown where the last action led.
    EndEpisode(stream, AppendObservation(slab, row, position, environment), environment);
    return;
  }
  const std::int64_t step = AppendDecision(slab, row, position, environment);
  stream.open = true;
  AddItems(stream, step, /*ended=*/false, environment);
  if (slab.terminated(row)[position] != 0 || slab.truncated(row)[position] != 0) {
    EndEpisode(stream, AppendFinal(slab, row, position, environment), environment);
  }
}

void EpisodeWriter::EndEpisode(Stream& stream, std::int64_t final_step, int environment) {
  AddItems(stream, final_step, /*ended=*/true, environment);
  stream.open = false;
}

std::int64_t EpisodeWriter::AppendDecision(const Slab& slab, int row, int position,
                                           int environment) {
  double reward = slab.reward(row)[position];
  if (format_.options().reward_clip) {
    const double clip = *format_.options().reward_clip;
    reward = std::clamp(reward, -clip, clip);
  }
  format_.frame().Encode(slab, row, position, 1, frame());
  const int mask_leaf = format_.frame().mask_leaf();
  // What a policy carries across an episode's start it forgets there.
  const bool carries = format_.has_state() && slab.is_first(row)[position] == 0;
  const std::int64_t step =
      Append({.action = slab.action(0, row, position),
              .reward = static_cast<float>(reward),
              .terminated = slab.terminated(row)[position],
              .mask = mask_leaf < 0 ? nullptr : slab.observation(mask_leaf, row, position),
              .state = carries ? slab.state(0, row, position) : nullptr},
             slab.version(row)[position], environment);
  if (errors_) {
    errors_->Decision(environment, step, slab, row, position, static_cast<float>(reward));
  }
  return step;
}

std::int64_t EpisodeWriter::AppendFinal(const Slab& slab, int row, int position, int environment) {
  const int slot = slab.final_index(row)[position];
  format_.frame().EncodeFinal(slab, slot, frame());
  const int mask_leaf = format_.frame().mask_leaf();
  const std::int64_t step =
      Append({.action = no_action_.data(),
              .mask = mask_leaf < 0 ? nullptr : slab.final_observation(mask_leaf, slot)},
             slab.version(row)[position], environment);
  if (errors_) errors_->Final(environment, step, slab, row, position);
  return step;
}

std::int64_t EpisodeWriter::AppendObservation(const Slab& slab, int row, int position,
                                              int environment) {
  format_.frame().Encode(slab, row, position, 1, frame());
  const int mask_leaf = format_.frame().mask_leaf();
  const std::int64_t step =
      Append({.action = no_action_.data(),
              .mask = mask_leaf < 0 ? nullptr : slab.observation(mask_leaf, row, position)},
             slab.version(row)[position], environment);
  if (errors_) errors_->Observation(environment, step, slab, row, position);
  return step;
}

std::int64_t EpisodeWriter::Append(const Caused& caused, std::int64_t version, int environment) {
  const auto* const numbers = reinterpret_cast<const std::byte*>(numbers_.data());
  std::array<const std::byte*, 7> leaves = {format_.frame().has_image() ? image_.data() : numbers,
                                            caused.action,
                                            reinterpret_cast<const std::byte*>(&caused.reward),
                                            reinterpret_cast<const std::byte*>(&caused.terminated)};
  std::size_t count = 4;
  if (caused.mask != nullptr) leaves[count++] = caused.mask;
  if (format_.has_vector()) leaves[count++] = numbers;
  if (format_.has_state()) {
    leaves[count++] = caused.state == nullptr ? no_state_.data() : caused.state;
  }
  return writer_->Append(environment, std::span(leaves).first(count),
                         static_cast<std::uint64_t>(version));
}

}  // namespace menger
