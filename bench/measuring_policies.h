#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "menger/collectors/policy.h"

// Policies for measuring collection alone: no inference at all, and inference that takes long.
namespace menger::bench {

// The no-inference line: the same action always, nothing but a memset.
class ConstantPolicy : public Policy {
 public:
  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override {}
  void Act(std::span<const ActSlice> slices) override {
    for (const auto& [slab, row, positions] : slices) {
      for (int leaf = 0; leaf < slab->spec().action.size(); ++leaf) {
        std::memset(slab->action(leaf, row, positions.first), 0,
                    slab->spec().action[leaf].bytes() * static_cast<std::size_t>(positions.count));
      }
    }
  }

 private:
  PolicySpec spec_;
};

// Acts like another policy after a sleep: inference on a device, during which the caller's core is
// free.
class DevicePolicy : public Policy {
 public:
  DevicePolicy(std::unique_ptr<Policy> policy, double seconds)
      : policy_(std::move(policy)), spec_(policy_->spec()), duration_(seconds) {
    spec_.waits_for_device = true;
  }
  const PolicySpec& spec() const override { return spec_; }
  void Refresh() override { policy_->Refresh(); }
  void Act(std::span<const ActSlice> slices) override {
    std::this_thread::sleep_for(duration_);
    policy_->Act(slices);
  }

 private:
  const std::unique_ptr<Policy> policy_;
  PolicySpec spec_;
  const std::chrono::duration<double> duration_;
};

}  // namespace menger::bench
