#include "menger/environments/lunar_lander.h"

#include <box2d/box2d.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

// Lengths are in metres of Box2D; the game was drawn at 30 pixels a metre, 50 frames a second.
constexpr double kScale = 30.0;
constexpr double kFramesPerSecond = 50;
constexpr double kWidth = 600 / kScale;
constexpr double kHeight = 400 / kScale;
constexpr int kChunks = 11;  // Corners of the terrain.
constexpr double kPadHeight = kHeight / 4;
constexpr double kLegAway = 20;
constexpr double kLegDown = 18;
constexpr double kLegWidth = 2;
constexpr double kLegHeight = 8;
constexpr double kLegTorque = 40;
constexpr double kMainPower = 13.0;
constexpr double kSidePower = 0.6;
constexpr double kMainOffset = 4;
constexpr double kSideAway = 12;
constexpr double kSideHeight = 14;
constexpr double kSideDepth = 17;  // Not kSideHeight: an oddity of the original that is kept.
constexpr double kStartForce = 1000.0;
constexpr int kIterations = 6 * 30;  // Of Box2D's velocity solver, as in the original.
// While a leg stands on the ground. Box2D 2.4 solves a joint's limit apart from its anchor, 2.3
// solved both at once; with 180 iterations a leg pushed beyond its limit is not at rest yet and
// throws the lander back into the air, spinning.
constexpr int kIterationsOnGround = 500;
constexpr int kPositionIterations = 2 * 30;
constexpr std::uint16_t kGroundCategory = 0x0001;
constexpr std::uint16_t kLanderCategory = 0x0010;
constexpr std::uint16_t kLegCategory = 0x0020;

b2Vec2 Vector(double x, double y) { return {static_cast<float>(x), static_cast<float>(y)}; }

}  // namespace

// The Box2D world of an episode, and what is read from it.
class LunarLander::World : public b2ContactListener {
 public:
  // Draws terrain and start force, in Gymnasium's order.
  void Build(Random& random);

  // Applies the engines and advances by one frame.
  void Step(LanderThrust thrust, double dispersion0, double dispersion1);

  // The observation before rounding to float32.
  std::array<double, kObservationSize> Observe() const;

  // The change of the potential that rewards approach, stillness, uprightness and ground contact.
  double ShapingGain(const std::array<double, kObservationSize>& state);

  const std::array<float, kChunks>& ground_heights() const { return ground_heights_; }
  bool crashed() const { return crashed_; }
  bool asleep() const { return !lander_->IsAwake(); }

  void BeginContact(b2Contact* contact) override { Touch(*contact, true); }
  void EndContact(b2Contact* contact) override { Touch(*contact, false); }

 private:
  void BuildTerrain(Random& random);
  void BuildLander(Random& random);
  void BuildLeg(int index);
  void Touch(b2Contact& contact, bool begins);

  std::optional<b2World> world_;  // In place: a new one each episode without allocating its 100 KB.
  b2Body* lander_ = nullptr;      // Owned by world_, as are the legs.
  std::array<b2Body*, 2> legs_{};
  std::array<bool, 2> touches_{};
  std::array<float, kChunks> ground_heights_{};
  bool crashed_ = false;
  std::optional<double> shaping_;
};

void LunarLander::World::Build(Random& random) {
  world_.emplace(Vector(0, -10.0));
  world_->SetContactListener(this);
  crashed_ = false;
  touches_ = {};
  shaping_.reset();
  BuildTerrain(random);
  BuildLander(random);
  BuildLeg(0);
  BuildLeg(1);
}

void LunarLander::World::BuildTerrain(Random& random) {
  std::array<double, kChunks + 1> height;
  for (double& value : height) value = random.Uniform(0, kHeight / 2);
  std::fill_n(height.begin() + kChunks / 2 - 2, 5, kPadHeight);
  for (int i = 0; i < kChunks; ++i) {
    // To the left of corner 0 stands the extra twelfth value.
    const double left = height[i == 0 ? kChunks : i - 1];
    ground_heights_[i] = static_cast<float>(0.33 * (left + height[i] + height[i + 1]));
  }

  const b2BodyDef definition;
  b2Body* const moon = world_->CreateBody(&definition);
  b2EdgeShape edge;
  edge.SetTwoSided(Vector(0, 0), Vector(kWidth, 0));
  moon->CreateFixture(&edge, 0);
  for (int i = 0; i + 1 < kChunks; ++i) {
    const double step = kWidth / (kChunks - 1);
    edge.SetTwoSided(Vector(step * i, ground_heights_[i]),
                     Vector(step * (i + 1), ground_heights_[i + 1]));
    b2FixtureDef fixture;
    fixture.shape = &edge;
    fixture.friction = 0.1F;
    fixture.filter.categoryBits = kGroundCategory;
    moon->CreateFixture(&fixture);
  }
}

void LunarLander::World::BuildLander(Random& random) {
  constexpr std::array<std::pair<int, int>, 6> kOutline = {
      {{-14, 17}, {-17, 0}, {-17, -10}, {17, -10}, {17, 0}, {14, 17}}};
  std::array<b2Vec2, kOutline.size()> corners;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    corners[i] = Vector(kOutline[i].first / kScale, kOutline[i].second / kScale);
  }
  b2PolygonShape shape;
  shape.Set(corners.data(), static_cast<int>(corners.size()));

  b2BodyDef definition;
  definition.type = b2_dynamicBody;
  definition.position = Vector(kWidth / 2, kHeight);
  lander_ = world_->CreateBody(&definition);
  b2FixtureDef fixture;
  fixture.shape = &shape;
  fixture.density = 5.0F;
  fixture.friction = 0.1F;
  fixture.filter.categoryBits = kLanderCategory;
  fixture.filter.maskBits = kGroundCategory;
  lander_->CreateFixture(&fixture);

  const double force_x = random.Uniform(-kStartForce, kStartForce);
  const double force_y = random.Uniform(-kStartForce, kStartForce);
  lander_->ApplyForceToCenter(Vector(force_x, force_y), true);
}

void LunarLander::World::BuildLeg(int index) {
  const int side = index == 0 ? -1 : 1;
  b2PolygonShape shape;
  shape.SetAsBox(static_cast<float>(kLegWidth / kScale), static_cast<float>(kLegHeight / kScale));

  b2BodyDef definition;
  definition.type = b2_dynamicBody;
  definition.position = Vector(kWidth / 2 - side * kLegAway / kScale, kHeight);
  definition.angle = static_cast<float>(side * 0.05);
  b2Body* const leg = world_->CreateBody(&definition);
  b2FixtureDef fixture;
  fixture.shape = &shape;
  fixture.density = 1.0F;
  fixture.filter.categoryBits = kLegCategory;
  fixture.filter.maskBits = kGroundCategory;
  leg->CreateFixture(&fixture);

  b2RevoluteJointDef joint;  // A spring: a motor that pushes the leg against its limit.
  joint.bodyA = lander_;
  joint.bodyB = leg;
  joint.localAnchorA = Vector(0, 0);
  joint.localAnchorB = Vector(side * kLegAway / kScale, kLegDown / kScale);
  joint.referenceAngle = leg->GetAngle();
  joint.enableMotor = true;
  joint.maxMotorTorque = static_cast<float>(kLegTorque);
  joint.motorSpeed = static_cast<float>(0.3 * side);
  joint.enableLimit = true;
  joint.lowerAngle = static_cast<float>(side < 0 ? 0.9 - 0.5 : -0.9);
  joint.upperAngle = static_cast<float>(side < 0 ? 0.9 : -0.9 + 0.5);
  world_->CreateJoint(&joint);
  legs_[index] = leg;
}

void LunarLander::World::Touch(b2Contact& contact, bool begins) {
  for (const b2Body* body : {contact.GetFixtureA()->GetBody(), contact.GetFixtureB()->GetBody()}) {
    if (body == lander_ && begins) crashed_ = true;
    for (int i = 0; i < 2; ++i) {
      if (body == legs_[i]) touches_[i] = begins;
    }
  }
}

void LunarLander::World::Step(LanderThrust thrust, double dispersion0, double dispersion1) {
  const double sine = std::sin(static_cast<double>(lander_->GetAngle()));
  const double cosine = std::cos(static_cast<double>(lander_->GetAngle()));
  if (thrust.main > 0) {
    const double along = kMainOffset / kScale + 2 * dispersion0;
    const double x = sine * along + -cosine * dispersion1;
    const double y = -cosine * along - sine * dispersion1;
    const double power = kMainPower * thrust.main;
    const b2Vec2 position = lander_->GetPosition();
    lander_->ApplyLinearImpulse(Vector(-x * power, -y * power),
                                Vector(position.x + x, position.y + y), true);
  }
  if (thrust.side != 0) {
    const double direction = thrust.side > 0 ? 1 : -1;
    const double across = 3 * dispersion1 + direction * kSideAway / kScale;
    const double x = sine * dispersion0 + -cosine * across;
    const double y = -cosine * dispersion0 - sine * across;
    const double power = kSidePower * std::abs(thrust.side);
    const b2Vec2 position = lander_->GetPosition();
    lander_->ApplyLinearImpulse(Vector(-x * power, -y * power),
                                Vector(position.x + x - sine * kSideDepth / kScale,
                                       position.y + y + cosine * kSideHeight / kScale),
                                true);
  }
  const bool on_ground = touches_[0] || touches_[1];
  world_->Step(static_cast<float>(1.0 / kFramesPerSecond),
               on_ground ? kIterationsOnGround : kIterations, kPositionIterations);
}

std::array<double, LunarLander::kObservationSize> LunarLander::World::Observe() const {
  const b2Vec2 position = lander_->GetPosition();
  const b2Vec2 speed = lander_->GetLinearVelocity();
  return {(position.x - kWidth / 2) / (kWidth / 2),
          (position.y - (kPadHeight + kLegDown / kScale)) / (kHeight / 2),
          speed.x * (kWidth / 2) / kFramesPerSecond,
          speed.y * (kHeight / 2) / kFramesPerSecond,
          lander_->GetAngle(),
          20.0 * lander_->GetAngularVelocity() / kFramesPerSecond,
          touches_[0] ? 1.0 : 0.0,
          touches_[1] ? 1.0 : 0.0};
}

double LunarLander::World::ShapingGain(const std::array<double, kObservationSize>& state) {
  const double shaping = -100 * std::sqrt(state[0] * state[0] + state[1] * state[1]) -
                         100 * std::sqrt(state[2] * state[2] + state[3] * state[3]) -
                         100 * std::abs(state[4]) + 10 * state[6] + 10 * state[7];
  const double gain = shaping_ ? shaping - *shaping_ : 0;
  shaping_ = shaping;
  return gain;
}

LunarLander::LunarLander() : world_(std::make_unique<World>()) { log_.reserve(kMaxEpisodeSteps); }
LunarLander::~LunarLander() = default;
LunarLander::LunarLander(LunarLander&&) noexcept = default;
LunarLander& LunarLander::operator=(LunarLander&&) noexcept = default;

const std::array<float, kChunks>& LunarLander::ground_heights() const {
  return world_->ground_heights();
}

void LunarLander::Reset(Random& random, float* observation) {
  random_at_reset_ = random.Save();
  log_.clear();
  world_->Build(random);
  Advance({}, random, observation);  // As Gymnasium: one step with the engines off.
}

StepResult LunarLander::Fly(LanderThrust thrust, Random& random, float* observation) {
  if (log_.size() >= kMaxEpisodeSteps) {
    throw FailedPrecondition("a LunarLander episode has at most {} steps; reset it",
                             kMaxEpisodeSteps);
  }
  log_.push_back(thrust);
  return Advance(thrust, random, observation);
}

StepResult LunarLander::Advance(LanderThrust thrust, Random& random, float* observation) {
  // Both are drawn in every step, engines on or off.
  const double dispersion0 = random.Uniform(-1.0, 1.0) / kScale;
  const double dispersion1 = random.Uniform(-1.0, 1.0) / kScale;
  world_->Step(thrust, dispersion0, dispersion1);

  const auto state = world_->Observe();
  for (int i = 0; i < kObservationSize; ++i) observation[i] = static_cast<float>(state[i]);
  const double fuel = thrust.main * 0.30 + std::abs(thrust.side) * 0.03;
  StepResult result{.reward = world_->ShapingGain(state) - fuel, .terminated = false};
  if (world_->crashed() || std::abs(state[0]) >= 1.0) result = {-100, true};
  if (world_->asleep()) result = {100, true};
  return result;
}

void LunarLander::Save(ArchiveWriter& archive) const {
  archive.Write("random_at_reset", random_at_reset_);
  archive.Write("log", log_);
}

void LunarLander::Load(ArchiveReader& archive) {
  std::vector<LanderThrust> log;
  archive.Read("log", log);
  if (log.size() > kMaxEpisodeSteps) {
    throw DataLoss("a LunarLander log in {} has {} steps; an episode has at most {}",
                   archive.path(), log.size(), kMaxEpisodeSteps);
  }
  Random random(archive.Read<RandomState>("random_at_reset"));
  std::array<float, kObservationSize> observation;
  Reset(random, observation.data());
  for (const LanderThrust& thrust : log) Fly(thrust, random, observation.data());
}

EnvironmentSpec LunarLander::SpecWith(const char* name, LeafSpec action, const char* description) {
  const double turn = static_cast<float>(2 * std::numbers::pi);
  const std::vector<double> low = {-2.5, -2.5, -10, -10, -turn, -10, -0.0, -0.0};
  const std::vector<double> high = {2.5, 2.5, 10, 10, turn, 10, 1, 1};
  return {.name = name,
          .observation = Spec(
              {LeafSpec::Box("observation", DataType::kFloat32, {kObservationSize}, low, high)}),
          .action = Spec({std::move(action)}),
          .max_episode_steps = kMaxEpisodeSteps,
          .reward_threshold = 200,
          .description = description};
}

EnvironmentSpec DiscreteLunarLander::Spec() {
  return SpecWith("LunarLander-v3", LeafSpec::Discrete("action", kActions),
                  "Land a craft between two flags by switching its three engines.");
}

StepResult DiscreteLunarLander::Step(int action, Random& random, float* observation) {
  const LanderThrust thrust{.main = action == 2 ? 1.0 : 0.0,
                            .side = action == 1 ? -1.0 : (action == 3 ? 1.0 : 0.0)};
  return Fly(thrust, random, observation);
}

EnvironmentSpec ContinuousLunarLander::Spec() {
  return SpecWith("LunarLanderContinuous-v3",
                  LeafSpec::Box("action", DataType::kFloat32, {kActionSize}, {-1}, {1}),
                  "Land a craft between two flags by throttling its engines.");
}

StepResult ContinuousLunarLander::Step(const float* action, Random& random, float* observation) {
  const double main = std::clamp(static_cast<double>(action[0]), -1.0, 1.0);
  const double side = std::clamp(static_cast<double>(action[1]), -1.0, 1.0);
  const LanderThrust thrust{.main = main > 0 ? (main + 1.0) * 0.5 : 0.0,
                            .side = std::abs(side) > 0.5 ? side : 0.0};
  return Fly(thrust, random, observation);
}

}  // namespace menger
