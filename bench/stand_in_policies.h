#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "menger/base/counter_random.h"
#include "menger/collectors/policy.h"
#include "menger/environments/environment.h"

// Policies for measuring collection without an algorithm: no inference at all, and a small network.
namespace menger::bench {

// The no-inference line: the same action always, nothing but a memset.
class ConstantPolicy : public Policy {
 public:
  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}
  void Act(Slab& slab, int row, PositionRange positions) override {
    for (int leaf = 0; leaf < slab.spec().action.size(); ++leaf) {
      std::memset(slab.action(leaf, row, positions.first), 0,
                  slab.spec().action[leaf].bytes() * static_cast<std::size_t>(positions.count));
    }
  }

 private:
  PolicySpec spec_;
};

// A perceptron of two hidden layers of 64 with random weights, sampling its actions (the first
// action leaf: discrete, or continuous as the bare output). Plain loops; batch-invariant.
class PerceptronPolicy : public Policy {
 public:
  explicit PerceptronPolicy(const EnvironmentSpec& environment)
      : inputs_(static_cast<int>(environment.observation[0].elements())),
        discrete_(environment.action[0].space == Space::kDiscrete),
        outputs_(static_cast<int>(discrete_ ? environment.action[0].counts[0]
                                            : environment.action[0].elements())),
        weights1_(Draw(inputs_ * kHidden, 1)),
        weights2_(Draw(kHidden * kHidden, 2)),
        weights3_(Draw(kHidden * outputs_, 3)) {
    spec_.columns = menger::Spec({LeafSpec::Scalar("log_probability", DataType::kFloat32)});
  }

  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}

  void Act(Slab& slab, int row, PositionRange positions) override {
    std::vector<float>& outputs = outputs_of_one_;
    outputs.resize(static_cast<std::size_t>(outputs_));
    for (int p = positions.first; p < positions.first + positions.count; ++p) {
      const int environment = slab.columns().EnvironmentAt(p);
      if (environment < 0) continue;
      Forward(slab.observation<float>(0, row, p), outputs);
      if (!discrete_) {
        std::copy(outputs.begin(), outputs.end(), slab.action<float>(0, row, p));
        continue;
      }
      const auto step = static_cast<std::uint64_t>(slab.first_step() + row);
      float left = random_.Uniform(static_cast<std::uint64_t>(environment), step);
      float sum = 0;
      for (float& output : outputs) sum += output = std::exp(output);
      int action = 0;
      while (action + 1 < outputs_ && (left -= outputs[action] / sum) >= 0) ++action;
      *slab.action<std::int64_t>(0, row, p) = action;
      *slab.policy<float>(0, row, p) = std::log(outputs[action] / sum);
      slab.version(row)[p] = 0;
    }
  }

 private:
  static constexpr int kHidden = 64;

  static std::vector<float> Draw(int count, std::uint64_t layer) {
    const CounterRandom random(/*seed=*/1, /*stream=*/0);
    std::vector<float> weights(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      weights[i] = 0.25f * (random.Uniform(layer, static_cast<std::uint64_t>(i)) - 0.5f);
    }
    return weights;
  }

  static void Layer(const float* in, int inputs, const float* weights, float* out) {
    std::fill_n(out, kHidden, 0.0f);
    for (int i = 0; i < inputs; ++i) {
      for (int j = 0; j < kHidden; ++j) out[j] += in[i] * weights[i * kHidden + j];
    }
    // A rational approximation of tanh, within 0.03: the cost of a real one without its code.
    for (int j = 0; j < kHidden; ++j) {
      const float x = std::clamp(out[j], -3.0f, 3.0f);
      out[j] = x * (27 + x * x) / (27 + 9 * x * x);
    }
  }

  void Forward(const float* observation, std::vector<float>& outputs) const {
    alignas(64) float first[kHidden];
    alignas(64) float second[kHidden];
    Layer(observation, inputs_, weights1_.data(), first);
    Layer(first, kHidden, weights2_.data(), second);
    std::fill(outputs.begin(), outputs.end(), 0.0f);
    for (int i = 0; i < kHidden; ++i) {
      for (int j = 0; j < outputs_; ++j) outputs[j] += second[i] * weights3_[i * outputs_ + j];
    }
  }

  const int inputs_;
  const bool discrete_;
  const int outputs_;
  const std::vector<float> weights1_, weights2_, weights3_;
  const CounterRandom random_{/*seed=*/1, /*stream=*/1};
  PolicySpec spec_;
  std::vector<float> outputs_of_one_;
};

// Acts like another policy after a sleep: inference on a device, during which the caller's core is
// free.
class DevicePolicy : public Policy {
 public:
  DevicePolicy(std::unique_ptr<Policy> policy, double seconds)
      : policy_(std::move(policy)), duration_(seconds) {}
  const PolicySpec& spec() const override { return policy_->spec(); }
  void Refresh() override { policy_->Refresh(); }
  void Act(Slab& slab, int row, PositionRange positions) override {
    std::this_thread::sleep_for(duration_);
    policy_->Act(slab, row, positions);
  }

 private:
  const std::unique_ptr<Policy> policy_;
  const std::chrono::duration<double> duration_;
};

}  // namespace menger::bench
