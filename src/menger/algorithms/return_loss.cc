#include "menger/algorithms/return_loss.h"

#include <cmath>
#include <cstddef>

#include "menger/algorithms/q_losses.h"
#include "menger/base/error.h"

namespace menger {
namespace {

// Each number that describes a return moves with it.
void MoveAtoms(int atoms, std::span<const float> next, std::span<const float> rewards,
               std::span<const float> bootstraps, std::span<float> targets) {
  for (std::size_t row = 0, i = 0; row < rewards.size(); ++row) {
    for (int atom = 0; atom < atoms; ++atom, ++i) {
      targets[i] = rewards[row] + bootstraps[row] * next[i];
    }
  }
}

class MeanLoss final : public ReturnLoss {
 public:
  explicit MeanLoss(double delta) : delta_(delta) {}

  void Targets(std::span<float> next, std::span<const float> rewards,
               std::span<const float> bootstraps, std::span<float> targets) const override {
    MoveAtoms(1, next, rewards, bootstraps, targets);
  }

  double Loss(std::span<const float> taken, std::span<const float> targets,
              std::span<const float> weights, std::span<float> priorities,
              std::span<float> gradient) const override {
    const double loss = HuberLoss(taken, targets, weights, delta_, priorities, gradient);
    for (float& priority : priorities) priority = std::abs(priority);
    return loss;
  }

 private:
  const double delta_;
};

class CategoricalLoss final : public ReturnLoss {
 public:
  explicit CategoricalLoss(const Support& support) : support_(support) {}

  void Targets(std::span<float> next, std::span<const float> rewards,
               std::span<const float> bootstraps, std::span<float> targets) const override {
    const auto atoms = static_cast<std::size_t>(support_.atoms);
    for (std::size_t row = 0; row < rewards.size(); ++row) {
      const std::span<float> logits = next.subspan(row * atoms, atoms);
      Softmax(logits, logits);
      ProjectCategorical(support_, logits, rewards[row], bootstraps[row],
                         targets.subspan(row * atoms, atoms));
    }
  }

  double Loss(std::span<const float> taken, std::span<const float> targets,
              std::span<const float> weights, std::span<float> priorities,
              std::span<float> gradient) const override {
    return CategoricalCrossEntropy(taken, targets, support_.atoms, weights, priorities, gradient);
  }

 private:
  const Support support_;
};

class QuantileLoss final : public ReturnLoss {
 public:
  explicit QuantileLoss(const ActionValues& values) : values_(values) {}

  void Targets(std::span<float> next, std::span<const float> rewards,
               std::span<const float> bootstraps, std::span<float> targets) const override {
    MoveAtoms(values_.atoms, next, rewards, bootstraps, targets);
  }

  double Loss(std::span<const float> taken, std::span<const float> targets,
              std::span<const float> weights, std::span<float> priorities,
              std::span<float> gradient) const override {
    const double loss =
        QuantileHuberLoss(taken, targets, values_.atoms, weights, priorities, gradient);
    const auto atoms = static_cast<std::size_t>(values_.atoms);
    for (std::size_t row = 0; row < priorities.size(); ++row) {
      priorities[row] = std::abs(values_.Mean(targets.subspan(row * atoms, atoms)) -
                                 values_.Mean(taken.subspan(row * atoms, atoms)));
    }
    return loss;
  }

 private:
  const ActionValues values_;
};

}  // namespace

std::unique_ptr<const ReturnLoss> MakeReturnLoss(const ActionValues& values, double huber_delta) {
  switch (values.model) {
    case ReturnModel::kMean:
      return std::make_unique<MeanLoss>(huber_delta);
    case ReturnModel::kCategorical:
      return std::make_unique<CategoricalLoss>(values.support);
    case ReturnModel::kQuantiles:
      return std::make_unique<QuantileLoss>(values);
  }
  throw Internal("there is no loss for return model {}", static_cast<int>(values.model));
}

}  // namespace menger
