#pragma once

#include <mujoco/mujoco.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "menger/base/archive.h"
#include "menger/base/random.h"
#include "menger/environments/simulator_group.h"

namespace menger {

// A model as Gymnasium's package has it. Throws FailedPrecondition, naming the file, where it
// cannot be read.
std::shared_ptr<const mjModel> LoadMujocoModel(const std::string& folder, std::string_view file);

// What Gymnasium's MuJoCo environments (version 5, all options at their defaults) have in common:
// one simulation of a model, with the names that MuJoCo gives to its parts (qpos are positions,
// qvel velocities).
//
// Each environment is a class derived from it with Reset and Step, short enough to be read beside
// Gymnasium's. Everything that they compute takes the steps that NumPy takes there, so traces are
// equal to the last bit. Actions beyond the model's limits are clipped by MuJoCo, but cost as
// given.
class MujocoSimulator {
 public:
  using Number = double;
  using Config = std::shared_ptr<const mjModel>;  // Shared because it is large and never changes.

  // All that the next steps depend on, the solver's warm start included.
  void Save(ArchiveWriter& archive) const;
  void Load(ArchiveReader& archive);

 protected:
  // Whether forces from contacts are needed: they take another pass over the bodies, and nothing
  // else depends on them.
  enum class Contacts { kUnused, kUsed };

  struct Description {
    std::string_view name;
    int observation_size = 0;
    double reward_threshold = 0;  // NaN: none is defined.
    std::string_view description;
  };
  static EnvironmentSpec MakeSpec(const mjModel& model, const Description& description);

  // A step of the environment is `frame_skip` time steps of the model.
  MujocoSimulator(const Config& model, int frame_skip, Contacts contacts);

  // The model's start state plus noise: `position_noise` is asked for each position in turn, then
  // `velocity_noise` for each velocity.
  template <typename PositionNoise, typename VelocityNoise>
  void Start(PositionNoise position_noise, VelocityNoise velocity_noise) {
    mj_resetData(model_.get(), data_.get());
    for (double& position : qpos()) position += position_noise();
    for (double& velocity : qvel()) velocity += velocity_noise();
    mj_forward(model_.get(), data_.get());
  }

  void Advance(const float* action);

  // Where the body is along x after a reset, and how fast it came from there to where it is now.
  void StartFrom(double x) { x_ = x; }
  double VelocityTo(double x);

  const mjModel& model() const { return *model_; }
  const mjData& data() const { return *data_; }
  std::span<double> qpos() { return {data_->qpos, static_cast<std::size_t>(model_->nq)}; }
  std::span<double> qvel() { return {data_->qvel, static_cast<std::size_t>(model_->nv)}; }
  std::span<const double> qpos() const {
    return {data_->qpos, static_cast<std::size_t>(model_->nq)};
  }
  std::span<const double> qvel() const {
    return {data_->qvel, static_cast<std::size_t>(model_->nv)};
  }
  // `width` numbers a body, without those of the world, which is body 0.
  std::span<const double> OfBodies(const double* array, int width) const {
    return {array + width, static_cast<std::size_t>(model_->nbody - 1) * width};
  }
  std::span<const double> contact_forces()
      const {  // Torque and force on each body, world included.
    return {data_->cfrc_ext, static_cast<std::size_t>(model_->nbody) * 6};
  }

 private:
  struct DeleteData {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };

  Config model_;
  std::unique_ptr<mjData, DeleteData> data_;
  int frame_skip_;
  Contacts contacts_;
  double x_ = 0;
};

// The sum of value(0), ..., value(count - 1) in the order in which numpy.sum adds up to 128
// numbers: eight running sums from eight numbers on.
template <typename Value>
auto NumpySum(std::size_t count, Value value) {
  using Number = decltype(value(std::size_t{0}));
  Number sum = 0;
  std::size_t i = 0;
  if (count >= 8) {
    Number sums[8];
    for (; i < 8; ++i) sums[i] = value(i);
    for (; i + 8 <= count; i += 8) {
      for (std::size_t k = 0; k < 8; ++k) sums[k] += value(i + k);
    }
    sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
  for (; i < count; ++i) sum += value(i);
  return sum;
}

template <typename Number>
Number SumOfSquares(const Number* values, std::size_t count) {
  return NumpySum(count, [values](std::size_t i) { return values[i] * values[i]; });
}

// Writes one part of an observation after the other.
class ObservationWriter {
 public:
  explicit ObservationWriter(double* to) : to_(to) {}

  void Add(std::span<const double> values) {
    for (const double value : values) *to_++ = value;
  }
  void AddClipped(std::span<const double> values, double limit) {
    for (const double value : values) *to_++ = Clipped(value, limit);
  }

  static double Clipped(double value, double limit) {  // NaN stays NaN, as in numpy.clip.
    return value > limit ? limit : value < -limit ? -limit : value;
  }

 private:
  double* to_;
};

}  // namespace menger
