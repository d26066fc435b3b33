#pragma once

// For tests: the update rules of several learners of one process, each in a thread of its own.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/update_rule.h"

namespace menger {

class JoinedRules {
 public:
  JoinedRules(int learners, const OptimiserOptions& options, std::span<const ParameterGroup> groups)
      : given_(static_cast<std::size_t>(learners)) {
    for (int i = 0; i < learners; ++i) {
      rules_.push_back(std::make_unique<Rule>(*this, i, MakeLocalUpdateRule(options, groups)));
    }
  }

  UpdateRule& rule(int learner) { return *rules_[static_cast<std::size_t>(learner)]; }

 private:
  class Rule final : public UpdateRule {
   public:
    Rule(JoinedRules& all, int learner, std::unique_ptr<UpdateRule> local)
        : all_(all), learner_(learner), local_(std::move(local)) {}

    using UpdateRule::Step;
    double Step(int group, const GroupValues& values, double learning_rate) override {
      std::vector<double> sums(values.gradients.begin(), values.gradients.end());
      Sum(sums);
      const std::vector<float> gradients(sums.begin(), sums.end());
      return local_->Step(
          group,
          {.manifest = values.manifest, .parameters = values.parameters, .gradients = gradients},
          learning_rate);
    }
    void Sum(std::span<double> values) override { all_.Sum(learner_, values); }
    int learners() const override { return static_cast<int>(all_.given_.size()); }
    int learner() const override { return learner_; }
    void Save(ArchiveWriter& archive) const override { local_->Save(archive); }
    void Load(ArchiveReader& archive) override { local_->Load(archive); }

   private:
    JoinedRules& all_;
    const int learner_;
    const std::unique_ptr<UpdateRule> local_;
  };

  // In the order of the learners. Throws DeadlineExceeded where one does not come, Internal where
  // they ask for different things.
  void Sum(int learner, std::span<double> values) {
    given_[static_cast<std::size_t>(learner)] = values;
    Meet();
    std::vector<double> sums(values.size(), 0.0);
    for (const std::span<double> given : given_) {
      if (given.size() != sums.size()) throw Internal("learners sum different things");
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += given[i];
    }
    Meet();
    std::ranges::copy(sums, values.begin());
  }

  void Meet() {
    std::unique_lock lock(mutex_);
    const int meeting = meetings_;
    if (++arrived_ == static_cast<int>(given_.size())) {
      arrived_ = 0;
      ++meetings_;
      changed_.notify_all();
      return;
    }
    const auto met = [&] { return meetings_ != meeting; };
    if (!changed_.wait_for(lock, std::chrono::seconds(60), met)) {
      throw DeadlineExceeded("a learner waits alone: the others took fewer steps");
    }
  }

  std::vector<std::unique_ptr<Rule>> rules_;
  std::vector<std::span<double>> given_;  // By learner.
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;   // Guarded by mutex_.
  int meetings_ = 0;  // Guarded by mutex_.
};

}  // namespace menger
