#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "menger/algorithms/actor_critic.h"
#include "menger/algorithms/algorithm.h"
#include "menger/algorithms/policy_gradient.h"
#include "menger/algorithms/schedule.h"
#include "menger/algorithms/slab_batch.h"
#include "menger/base/options.h"
#include "menger/base/random.h"

namespace menger {

// Options that PPO, A2C and their kin share. Each has defaults of its own.
struct ActorCriticOptions {
  double discount = 0.99;
  double gae_lambda = 0.95;
  double learning_rate = 2.5e-4;
  std::string learning_rate_schedule = "linear";
  double value_coefficient = 0.5;
  double entropy_coefficient = 0.01;
  bool normalise_advantage = true;
  double initial_log_std = 0;

  void Declare(Options& options);
};

// Learns an actor and a critic from fresh slabs, in minibatches: all of PPO, A2C and their kin but
// the loss, which a subclass gives.
//
// A slab's valid rows are divided into minibatches of one size (or sizes that differ by one), so
// that each row counts the same. With a recurrent network they are whole columns of the slab.
class ActorCriticAlgorithm : public SlabAlgorithm {
 public:
  const PolicyMaker& policies() const final { return model_.policies(); }
  Publication& publication() final { return model_.published().publication(); }
  void Publish() final { model_.published().Publish(); }
  std::int64_t parameter_count() const final { return model_.network().manifest().size(); }

  void BeforeCollection(UpdateRule& update) final;
  // Throws Internal where Loss has set more or fewer metrics than loss_names() has.
  Metrics Learn(std::span<Slab* const> slabs, UpdateRule& update, double progress) final;
  std::vector<std::string> metric_names() const final;

  void Save(ArchiveWriter& archive) const final;
  void Load(ArchiveReader& archive) final;
  void LoadParameters(ArchiveReader& archive) final;

  Network& network() { return model_.network(); }  // For tests and for looking into a run.

 protected:
  // How a slab is gone through.
  struct Passes {
    std::int64_t epochs = 1;
    std::int64_t minibatch_size = 0;  // Rows at most, in random order; 0: all at once, in order.
  };
  ActorCriticAlgorithm(const ActorCriticOptions& options, const Passes& passes,
                       const AlgorithmContext& context);

  const ActorCriticOptions& options() const { return options_; }

  // One gradient step, as a loss sees it.
  struct LossStep {
    const double progress;  // In [0, 1], for schedules.
    UpdateRule& update;     // For what several learners must know together.
    // To be set: one value for each of loss_names(), of this learner's rows by their weights. What
    // is reported is the sum over all learners, a mean over minibatches.
    std::vector<double> metrics;
    bool stray = false;  // To be set where learning from this slab is to end, before this step.
  };

  // The loss of a minibatch: overwrites the gradients of log-probabilities and values, given
  // `policy`'s present ones. Everything is a sum over rows, weighted by minibatch.weights, which
  // are 1 in all over all learners. The entropy bonus is added by the caller.
  virtual void Loss(const Minibatch& minibatch, PolicyGradient& policy, LossStep& step) = 0;
  virtual std::vector<std::string> loss_names() const = 0;

  // Sets advantages and returns of what was collected; generalised ones (GAE) unless overridden.
  virtual void EstimateAdvantages(SlabBatch& batch) {
    batch.EstimateAdvantages(options_.discount, options_.gae_lambda);
  }

  // What the learning rate is multiplied by for an update from so many rows of all learners.
  virtual double RateScale(double /*rows*/) const { return 1; }

 private:
  struct Totals;  // Sums over minibatches of what Learn reports.

  void AddLosses(const LossStep& step, Totals& totals) const;
  std::int64_t MinibatchCount() const;
  // The minibatch of this place among `count`; without rows where there are too few for all.
  Minibatch Gather(std::int64_t index, std::int64_t count);
  // One pass over the slab; false where it strayed.
  bool Epoch(std::int64_t minibatches, double learning_rate, LossStep& step, Totals& totals);

  const ActorCriticOptions options_;
  const Passes passes_;
  const Schedule learning_rate_schedule_;
  ActorCritic model_;
  SlabBatch batch_;
  PolicyGradient gradient_;
  Random shuffle_;
  std::vector<std::int32_t> order_;  // Of rows, or of columns where the network has a memory.
};

}  // namespace menger
