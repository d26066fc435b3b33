#include "menger/environments/mujoco/mujoco_simulator.h"

#include <limits>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

// MuJoCo would end the program at an error, and write warnings into a file of the working folder.
// It says one warning, that a simulation has become unstable and was reset; Gymnasium goes on then.
void HandleMessage(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) throw Internal("MuJoCo: {}", message->subject);
}

}  // namespace

std::shared_ptr<const mjModel> LoadMujocoModel(const std::string& folder, std::string_view file) {
  mju_setLogHandler(HandleMessage);
  const std::string path = fmt::format("{}/{}", folder, file);
  char reason[1000] = "";
  mjModel* const model = mj_loadXML(path.c_str(), nullptr, reason, sizeof(reason));
  if (model == nullptr) {
    throw FailedPrecondition(
        "cannot read the MuJoCo model '{}': {}; mujoco.models must be a folder with the models of "
        "gymnasium's envs/mujoco/assets",
        path, reason);
  }
  return {model, [](const mjModel* given) { mj_deleteModel(const_cast<mjModel*>(given)); }};
}

EnvironmentSpec MujocoSimulator::MakeSpec(const mjModel& model, const Description& description) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> low, high;
  for (int i = 0; i < model.nu; ++i) {  // float32 as Gymnasium's bounds.
    low.push_back(static_cast<float>(model.actuator_ctrlrange[2 * i]));
    high.push_back(static_cast<float>(model.actuator_ctrlrange[2 * i + 1]));
  }
  return {.name = std::string(description.name),
          .observation =
              Spec({LeafSpec::Box("observation", DataType::kFloat64, {description.observation_size},
                                  {-kInfinity}, {kInfinity})}),
          .action = Spec({LeafSpec::Box("action", DataType::kFloat32, {model.nu}, std::move(low),
                                        std::move(high))}),
          .max_episode_steps = 1000,
          .reward_threshold = description.reward_threshold,
          .description = std::string(description.description)};
}

MujocoSimulator::MujocoSimulator(const Config& model, int frame_skip, Contacts contacts)
    : model_(model), data_(mj_makeData(model.get())), frame_skip_(frame_skip), contacts_(contacts) {
  if (data_ == nullptr) throw Unavailable("no memory is left for another MuJoCo simulation");
}

void MujocoSimulator::Advance(const float* action) {
  for (int i = 0; i < model_->nu; ++i) data_->ctrl[i] = action[i];
  for (int frame = 0; frame < frame_skip_; ++frame) mj_step(model_.get(), data_.get());
  if (contacts_ == Contacts::kUsed) mj_rnePostConstraint(model_.get(), data_.get());
}

double MujocoSimulator::VelocityTo(double x) {
  const double velocity = (x - x_) / (model_->opt.timestep * frame_skip_);
  x_ = x;
  return velocity;
}

void MujocoSimulator::Save(ArchiveWriter& archive) const {
  std::vector<double> state(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
  mj_getState(model_.get(), data_.get(), state.data(), mjSTATE_INTEGRATION);
  archive.Write("state", state);
  archive.Write("x", x_);
}

void MujocoSimulator::Load(ArchiveReader& archive) {
  std::vector<double> state(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
  archive.Read("state", std::span(state));
  archive.Read("x", x_);
  mj_resetData(model_.get(), data_.get());
  mj_setState(model_.get(), data_.get(), state.data(), mjSTATE_INTEGRATION);
}

}  // namespace menger
