#include "menger/networks/network.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "menger/base/error.h"
#include "menger/networks/cnn.h"
#include "menger/networks/joined_network.h"
#include "menger/networks/mlp.h"
#include "menger/networks/torch_library.h"

namespace menger {
namespace {

const std::vector<std::string> kKinds = {"mlp",  "nature_cnn",      "a3c_cnn",
                                         "lstm", "nature_cnn_lstm", "a3c_cnn_lstm"};
const std::vector<std::string> kActivations = {"tanh", "relu"};

void CheckChoice(const char* key, const std::string& value,
                 const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
  throw InvalidArgument("{} is \"{}\"; it must be one of {}{}", key, value,
                        fmt::join(choices, ", "), DidYouMean(value, choices));
}

void CheckHeads(const std::vector<HeadSpec>& heads) {
  if (heads.empty()) throw InvalidArgument("a network needs at least one head");
  for (auto head = heads.begin(); head != heads.end(); ++head) {
    if (head->width < 1) {
      throw InvalidArgument("head '{}' of a network has width {}; it must be at least 1",
                            head->name, head->width);
    }
    if (std::any_of(heads.begin(), head,
                    [&](const HeadSpec& other) { return other.name == head->name; })) {
      throw InvalidArgument("two heads of a network are called '{}'", head->name);
    }
  }
}

// The networks that are normalised are those of MlpNetwork.
void CheckLayerNorm(const NetworkSpec& spec) {
  const NetworkOptions& options = spec.options;
  if (!options.layer_norm) return;
  if (options.kind != "mlp") {
    throw InvalidArgument(
        "network.layer_norm = true is for network.kind = \"mlp\", but this is \"{}\"; set "
        "network.layer_norm = false",
        options.kind);
  }
  if (spec.device == "cpu" && spec.precision == "fp32") return;
  throw InvalidArgument(
      "network.layer_norm = true is for device \"cpu\" and precision \"fp32\", but these are "
      "\"{}\" "
      "and \"{}\"; use those, or set network.layer_norm = false",
      spec.device, spec.precision);
}

void CheckSpec(const NetworkSpec& spec) {
  CheckChoice("network.kind", spec.options.kind, kKinds);
  CheckChoice("network.activation", spec.options.activation, kActivations);
  for (const std::int64_t size : spec.options.hidden) {
    if (size < 1 || size > 65536) {
      throw InvalidArgument("network.hidden has a layer of size {}; it must be 1 to 65536", size);
    }
  }
  if (spec.observation.elements() < 1) {
    throw InvalidArgument("observation '{}' of shape {} is empty: a network cannot read it",
                          spec.observation.name, ToString(spec.observation.shape));
  }
  if (spec.vector_elements < 0) {
    throw InvalidArgument("{} numbers beside observation '{}'; there are 0 or more",
                          spec.vector_elements, spec.observation.name);
  }
  CheckHeads(spec.heads);
  CheckLayerNorm(spec);
}

}  // namespace

void NetworkOptions::Declare(Options& options) {
  options.Add("kind", &kind,
              {.choices = kKinds,
               .consequence = "what reads the observation: vectors (mlp, lstm) or stacked frames "
                              "(cnn); lstm remembers what it saw"});
  options.Add("hidden", &hidden,
              {.minimum = 1,
               .maximum = 65536,
               .unit = "units",
               .consequence = "one hidden layer each: more can learn more, and cost time a step"});
  options.Add("activation", &activation,
              {.choices = kActivations,
               .consequence = "between layers: tanh is steadier, relu costs less"});
  options.Add(
      "shared_trunk", &shared_trunk,
      {.consequence = "policy and value (duelling: advantage and value) share hidden layers: "
                      "half the time, and their losses disturb each other; convolutions "
                      "are shared always"});
  options.Add("layer_norm", &layer_norm,
              {.consequence = "of kind = mlp: hidden layers are normalised (Ba et al. 2016) before "
                              "their activation function: steadier critics, for a third to half "
                              "more time in the network"});
  options.Add("lstm_size", &lstm_size,
              {.minimum = 1,
               .maximum = 65536,
               .unit = "units",
               .consequence = "what the kinds with an lstm can remember from step to step"});
}

std::unique_ptr<Network> MakeNetwork(const NetworkSpec& spec, Random& random,
                                     SharedWorkerPool threads) {
  CheckSpec(spec);
  if (spec.vector_elements > 0 && !spec.options.reads_frames()) {
    return std::make_unique<JoinedNetwork>(spec, random, std::move(threads));
  }
  if (spec.options.kind == "mlp" && spec.device == "cpu" && spec.precision == "fp32") {
    return std::make_unique<MlpNetwork>(spec, random, std::move(threads));
  }
  const bool frames_alone =
      spec.options.reads_frames() && !spec.options.remembers() && spec.vector_elements == 0;
  if (frames_alone && spec.device == "cpu" && spec.precision == "bf16" && HasAvx512Bf16()) {
    return std::make_unique<CnnNetwork>(spec, random, std::move(threads));
  }
  return MakeTorchNetwork(spec, random, threads.threads());
}

}  // namespace menger
