// Compiled with -O3: the loops below are meant to be vectorised.
#include "menger/networks/optimiser.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

class Adam : public Optimiser {
 public:
  Adam(const OptimiserOptions& options, std::int64_t parameters)
      : beta1_(options.beta1),
        beta2_(options.beta2),
        epsilon_(options.epsilon),
        mean_(static_cast<std::size_t>(parameters)),
        square_(static_cast<std::size_t>(parameters)) {}

  void Begin(double learning_rate) override {
    ++steps_;
    const double steps = static_cast<double>(steps_);
    rate_ = static_cast<float>(learning_rate / (1.0 - std::pow(beta1_, steps)));
    correction_ = static_cast<float>(std::sqrt(1.0 - std::pow(beta2_, steps)));
  }

  void Move(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
            float gradient_scale) override {
    const float rate = rate_;
    const float correction = correction_;
    const float beta2 = static_cast<float>(beta2_);
    const float new1 = static_cast<float>(1.0 - beta1_);
    const float new2 = static_cast<float>(1.0 - beta2_);
    const float epsilon = static_cast<float>(epsilon_);
    float* const __restrict parameter = parameters.data();
    const float* const __restrict gradient = gradients.data();
    float* const __restrict mean = mean_.data() + first;
    float* const __restrict square = square_.data() + first;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const float g = gradient[i] * gradient_scale;
      mean[i] += (g - mean[i]) * new1;
      square[i] = square[i] * beta2 + g * g * new2;
      parameter[i] -= rate * mean[i] / (std::sqrt(square[i]) / correction + epsilon);
    }
  }

  void Save(ArchiveWriter& archive) const override {
    archive.Write("steps", steps_);
    archive.Write("mean", mean_);
    archive.Write("square", square_);
  }

  void Load(ArchiveReader& archive) override {
    archive.Read("mean", std::span<float>(mean_));
    archive.Read("square", std::span<float>(square_));
    archive.Read("steps", steps_);
  }

 private:
  const double beta1_;
  const double beta2_;
  const double epsilon_;
  std::int64_t steps_ = 0;
  float rate_ = 0;             // Of the step under way, corrected for the start of the mean,
  float correction_ = 1;       // and of the square's root.
  std::vector<float> mean_;    // Of the gradient, decaying by beta1.
  std::vector<float> square_;  // Of its square, decaying by beta2.
};

// The two usual forms; they differ much while gradients are small. With epsilon outside the root
// and an accumulator that starts at 0, the first steps are ten times the learning rate (decay
// 0.99); with epsilon inside and a start at 1, they are as small as plain gradient descent's.
enum class RmsPropForm { kTensorFlow, kTorch };

class RmsProp : public Optimiser {
 public:
  RmsProp(const OptimiserOptions& options, RmsPropForm form, std::int64_t parameters)
      : form_(form),
        decay_(options.decay),
        epsilon_(options.epsilon),
        square_(static_cast<std::size_t>(parameters),
                form == RmsPropForm::kTensorFlow ? 1.0f : 0.0f),
        mean_(options.centred ? static_cast<std::size_t>(parameters) : 0) {}

  void Begin(double learning_rate) override { rate_ = static_cast<float>(learning_rate); }

  void Move(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
            float gradient_scale) override {
    const float epsilon = static_cast<float>(epsilon_);
    const auto move = [&](auto size) {
      if (mean_.empty()) return MovePlain(first, parameters, gradients, gradient_scale, size);
      MoveCentred(first, parameters, gradients, gradient_scale, size);
    };
    if (form_ == RmsPropForm::kTensorFlow) {
      move([epsilon](float square) { return std::sqrt(square + epsilon); });
    } else {
      move([epsilon](float square) { return std::sqrt(square) + epsilon; });
    }
  }

  void Save(ArchiveWriter& archive) const override {
    archive.Write("square", square_);
    if (!mean_.empty()) archive.Write("mean", mean_);
  }
  void Load(ArchiveReader& archive) override {
    archive.Read("square", std::span<float>(square_));
    if (!mean_.empty()) archive.Read("mean", std::span<float>(mean_));
  }

 private:
  template <typename Size>
  void MovePlain(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
                 float gradient_scale, Size size) {
    const float rate = rate_;
    const float decay = static_cast<float>(decay_);
    const float rest = static_cast<float>(1.0 - decay_);
    float* const __restrict parameter = parameters.data();
    const float* const __restrict gradient = gradients.data();
    float* const __restrict square = square_.data() + first;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const float g = gradient[i] * gradient_scale;
      square[i] = square[i] * decay + g * g * rest;
      parameter[i] -= rate * g / size(square[i]);
    }
  }

  template <typename Size>
  void MoveCentred(std::size_t first, std::span<float> parameters, std::span<const float> gradients,
                   float gradient_scale, Size size) {
    const float rate = rate_;
    const float decay = static_cast<float>(decay_);
    const float rest = static_cast<float>(1.0 - decay_);
    float* const __restrict parameter = parameters.data();
    const float* const __restrict gradient = gradients.data();
    float* const __restrict square = square_.data() + first;
    float* const __restrict mean = mean_.data() + first;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const float g = gradient[i] * gradient_scale;
      square[i] = square[i] * decay + g * g * rest;
      mean[i] = mean[i] * decay + g * rest;
      // Rounding may take the variance below 0.
      parameter[i] -= rate * g / size(std::max(0.0F, square[i] - mean[i] * mean[i]));
    }
  }

  const RmsPropForm form_;
  const double decay_;
  const double epsilon_;
  float rate_ = 0;             // Of the step under way.
  std::vector<float> square_;  // Of the gradient, decaying.
  std::vector<float> mean_;    // Of the gradient, decaying; empty unless it is centred.
};

}  // namespace

std::unique_ptr<Optimiser> MakeOptimiser(const OptimiserOptions& options, std::int64_t parameters) {
  if (parameters < 1) {
    throw InvalidArgument("an optimiser for {} parameters; at least 1 is needed", parameters);
  }
  if (options.kind == "adam") return std::make_unique<Adam>(options, parameters);
  if (options.kind == "rmsprop") {
    return std::make_unique<RmsProp>(options, RmsPropForm::kTensorFlow, parameters);
  }
  if (options.kind == "torch_rmsprop") {
    return std::make_unique<RmsProp>(options, RmsPropForm::kTorch, parameters);
  }
  throw InvalidArgument("optimiser.kind is \"{}\"; it must be adam, rmsprop or torch_rmsprop",
                        options.kind);
}

}  // namespace menger
