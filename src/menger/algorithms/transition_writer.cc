#include "menger/algorithms/transition_writer.h"

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

}  // namespace

TransitionOptions TransitionsFor(int n_step, const AlgorithmContext& context) {
  const TransformOptions& transforms = context.transforms;
  TransitionOptions options{.n_step = n_step,
                            .frame_stack = static_cast<int>(transforms.frame_stack),
                            .reads_frames = context.network.reads_frames()};
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

TransitionFormat::TransitionFormat(const EnvironmentSpec& environment,
                                   const TransitionOptions& options)
    : options_(options), frame_(environment.observation, /*frame_stack=*/1, options.reads_frames) {
  // Refuses what cannot be stacked.
  const ObservationEncoder stacked(environment.observation, options.frame_stack,
                                   options.reads_frames);
  std::vector<LeafSpec> leaves = {Named(frame_.encoded(), "observation"),
                                  Named(OnlyAction(environment), "action"),
                                  LeafSpec::Scalar("reward", DataType::kFloat32),
                                  LeafSpec::Scalar("terminated", DataType::kUint8)};
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
  if (has_mask()) {
    leaves.push_back(environment.observation[frame_.mask_leaf()]);
    items_.columns.push_back({.name = "next_mask", .leaf = std::string(kActionMask)});
  }
  if (has_vector()) {
    LeafSpec vector = LeafSpec::Scalar("vector", DataType::kFloat32);
    vector.shape = {frame_.vector_elements()};
    leaves.push_back(std::move(vector));
    for (const char* const name : {"vector", "next_vector"}) {
      items_.columns.push_back({.name = name,
                                .leaf = "vector",
                                .rows = options.frame_stack,
                                .padding = Padding::kFront});
    }
  }
  items_.steps = Spec(std::move(leaves));
  items_.Check();
}

namespace {

WriterOptions WriterFor(const TransitionFormat& format, const SlabWriterContext& context) {
  return {.chunk_steps = context.chunk_steps,
          .history = format.options().n_step + format.options().frame_stack,
          .compression = context.compression};
}

}  // namespace

TransitionWriter::TransitionWriter(const TransitionFormat& format, const SlabWriterContext& context)
    : format_(format),
      table_(context.table),
      streams_(context.environments),
      writer_(context.replay.NewWriter(format.items().steps, WriterFor(format, context),
                                       context.environments)),
      image_(format.frame().image_bytes()),
      numbers_(static_cast<std::size_t>(format.frame().numbers())),
      no_action_(format.items().steps[1].bytes()) {}

void TransitionWriter::Write(const Slab& slab, const Deadline& deadline) {
  const ColumnLayout& columns = slab.columns();
  for (int environment = 0; environment < columns.columns(); ++environment) {
    for (int row = 0; row < slab.horizon(); ++row) {
      WriteRow(slab, row, environment);
      const bool last = row + 1 == slab.horizon();
      if (last || (row + 1) % kRowsHeld == 0) writer_->Flush(environment, deadline);
    }
  }
  writer_->Await(deadline);
}

void TransitionWriter::Save(ArchiveWriter archive) const {
  std::vector<std::int64_t> numbers;  // Three a stream.
  for (const Stream& stream : streams_) {
    numbers.insert(numbers.end(), {stream.episode_begin, stream.next_item, stream.open ? 1 : 0});
  }
  archive.Write("streams", numbers);
}

void TransitionWriter::Load(ArchiveReader archive) {
  std::vector<std::int64_t> numbers(3 * streams_.size());
  archive.Read("streams", std::span(numbers));
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    streams_[i] = {.episode_begin = numbers[3 * i],
                   .next_item = numbers[3 * i + 1],
                   .open = numbers[3 * i + 2] != 0};
  }
}

void TransitionWriter::WriteRow(const Slab& slab, int row, int environment) {
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
  if (step - stream.next_item == format_.options().n_step) {
    AddItem(stream, step, environment);
  }
  if (slab.terminated(row)[position] != 0 || slab.truncated(row)[position] != 0) {
    EndEpisode(stream, AppendFinal(slab, row, position, environment), environment);
  }
}

std::int64_t TransitionWriter::AppendDecision(const Slab& slab, int row, int position,
                                              int environment) {
  double reward = slab.reward(row)[position];
  if (format_.options().reward_clip) {
    const double clip = *format_.options().reward_clip;
    reward = std::clamp(reward, -clip, clip);
  }
  format_.frame().Encode(slab, row, position, 1, frame());
  const int mask_leaf = format_.frame().mask_leaf();
  return Append({.action = slab.action(0, row, position),
                 .reward = static_cast<float>(reward),
                 .terminated = slab.terminated(row)[position],
                 .mask = mask_leaf < 0 ? nullptr : slab.observation(mask_leaf, row, position)},
                slab.version(row)[position], environment);
}

std::int64_t TransitionWriter::AppendFinal(const Slab& slab, int row, int position,
                                           int environment) {
  const int slot = slab.final_index(row)[position];
  format_.frame().EncodeFinal(slab, slot, frame());
  const int mask_leaf = format_.frame().mask_leaf();
  return Append({.action = no_action_.data(),
                 .mask = mask_leaf < 0 ? nullptr : slab.final_observation(mask_leaf, slot)},
                slab.version(row)[position], environment);
}

std::int64_t TransitionWriter::AppendObservation(const Slab& slab, int row, int position,
                                                 int environment) {
  format_.frame().Encode(slab, row, position, 1, frame());
  const int mask_leaf = format_.frame().mask_leaf();
  return Append({.action = no_action_.data(),
                 .mask = mask_leaf < 0 ? nullptr : slab.observation(mask_leaf, row, position)},
                slab.version(row)[position], environment);
}

std::int64_t TransitionWriter::Append(const Caused& caused, std::int64_t version, int environment) {
  const auto* const numbers = reinterpret_cast<const std::byte*>(numbers_.data());
  std::array<const std::byte*, 6> leaves = {format_.frame().has_image() ? image_.data() : numbers,
                                            caused.action,
                                            reinterpret_cast<const std::byte*>(&caused.reward),
                                            reinterpret_cast<const std::byte*>(&caused.terminated)};
  std::size_t count = 4;
  if (caused.mask != nullptr) leaves[count++] = caused.mask;
  if (format_.has_vector()) leaves[count++] = numbers;
  return writer_->Append(environment, std::span(leaves).first(count),
                         static_cast<std::uint64_t>(version));
}

void TransitionWriter::EndEpisode(Stream& stream, std::int64_t final_step, int environment) {
  while (stream.next_item < final_step) AddItem(stream, final_step, environment);
  stream.open = false;
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
  writer_->Add(environment, table_, /*priority=*/{}, std::span(ranges).first(count));
}

}  // namespace menger
