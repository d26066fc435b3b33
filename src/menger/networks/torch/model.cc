#include "menger/networks/torch/model.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr const char* kTrunk = "trunk";

void CheckSpec(const NetworkSpec& spec) {
  static const std::array<std::string, 6> kKinds = {"mlp",  "nature_cnn",      "a3c_cnn",
                                                    "lstm", "nature_cnn_lstm", "a3c_cnn_lstm"};
  const std::string& kind = spec.options.kind;
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    throw InvalidArgument("network.kind is '{}'{}; it must be one of {}", kind,
                          DidYouMean(kind, kKinds), fmt::join(kKinds, ", "));
  }
  if (spec.vector_elements < 0 || (spec.vector_elements > 0 && !spec.options.reads_frames())) {
    throw InvalidArgument("network '{}' reads no vector of {} beside its observation", kind,
                          spec.vector_elements);
  }
  if (spec.heads.empty()) throw InvalidArgument("a network needs at least one head, got none");
  for (const HeadSpec& head : spec.heads) {
    if (head.width < 1) {
      throw InvalidArgument("head '{}' has width {}; it must be at least 1", head.name, head.width);
    }
  }
}

}  // namespace

Model::Model(const NetworkSpec& spec) : head_specs_(spec.heads) {
  CheckSpec(spec);
  const NetworkOptions& options = spec.options;
  const bool own_trunks = options.kind == "mlp" && !options.shared_trunk;
  const int streams = spec.streams();
  std::int64_t features = 0;
  std::int64_t next_feature = 0;
  if (!own_trunks) {
    trunks_.push_back(options.reads_frames()
                          ? MakeConvolutionTrunk(plan_, kTrunk, spec)
                          : MakeMlpTrunk(plan_, kTrunk, spec.observation, options));
    features = trunks_[0]->outputs() / streams;
    if (options.remembers()) {
      lstm_.emplace(plan_, std::string(kTrunk) + "/lstm", features, options.lstm_size);
      features = lstm_->size();
    }
  }
  for (const HeadSpec& spec_of_head : spec.heads) {
    Head head;
    if (spec_of_head.constant) {
      head.bias =
          plan_.AddConstant(spec_of_head.name + "/bias", {spec_of_head.width}, spec_of_head.bias);
    } else {
      std::size_t hidden_layers = 0;  // Its own.
      if (own_trunks) {
        trunks_.push_back(MakeMlpTrunk(plan_, spec_of_head.name, spec.observation, options));
        head.trunk = static_cast<int>(trunks_.size()) - 1;
        features = trunks_.back()->outputs();
        hidden_layers = options.hidden.size();
      }
      if (streams > 1) head.feature = std::exchange(next_feature, next_feature + features);
      const std::string name = fmt::format("{}/{}", spec_of_head.name, hidden_layers);
      head.output.emplace(plan_, name, features, spec_of_head.width, spec_of_head.gain,
                          spec_of_head.bias);
    }
    heads_.push_back(head);
  }
}

Tensors Model::Run(const Tensors& weights, const ModelInput& input, const at::Tensor& state,
                   std::span<const std::uint8_t> is_first, at::Tensor* next_state) const {
  Tensors features;
  for (const auto& trunk : trunks_) {
    features.push_back((*trunk)(weights, input).to(at::kFloat));
  }
  if (lstm_) std::tie(features[0], *next_state) = lstm_->Run(weights, features[0], state, is_first);

  Tensors outputs;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    if (!head.output) {
      outputs.push_back(weights[head.bias].expand({input.observations.size(0), -1}));
      continue;
    }
    const at::Tensor& all = features[head.trunk];
    outputs.push_back((*head.output)(weights, all.narrow(1, head.feature, head.output->inputs())));
  }
  return outputs;
}

}  // namespace menger
