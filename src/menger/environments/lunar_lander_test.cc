#include "menger/environments/lunar_lander.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "menger/base/random.h"

namespace menger {
namespace {

// The terrain comes from the first draws of a reset, so equal heights mean an equal stream.
TEST(LunarLanderTest, TheTerrainOfASeedIsGymnasiumsToTheLastBit) {
  std::ifstream stream(std::string(MENGER_SOURCE_FOLDER) +
                       "/tests/data/traces/LunarLander.terrain.csv");
  std::string line;
  std::getline(stream, line);
  int seeds = 0;
  for (; std::getline(stream, line); ++seeds) {
    std::istringstream cells(line);
    std::string cell;
    std::getline(cells, cell, ',');
    Random random = Random::FromSeed(std::stoull(cell));
    DiscreteLunarLander lander;
    float observation[8];
    lander.Reset(random, observation);
    for (const float height : lander.ground_heights()) {
      std::getline(cells, cell, ',');
      ASSERT_EQ(height, std::stof(cell)) << line;
    }
  }
  EXPECT_EQ(seeds, 5);
}

// The recorded returns of Gymnasium's LunarLander, from tools/record_lander.py.
std::vector<double> RecordedReturns(const std::string& environment, const std::string& policy) {
  std::ifstream stream(std::string(MENGER_SOURCE_FOLDER) +
                       "/tests/data/traces/LunarLander.returns.csv");
  EXPECT_TRUE(stream);
  std::vector<double> returns;
  const std::string prefix = environment + "," + policy + ",";
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(prefix)) returns.push_back(std::stod(line.substr(prefix.size())));
  }
  return returns;
}

// How sure one may be that two samples come from different distributions: the p-value of the
// two-sample Kolmogorov-Smirnov test by its asymptotic series.
double KolmogorovSmirnovP(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double distance = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value) ++i;
    while (j < b.size() && b[j] <= value) ++j;
    distance = std::max(distance, std::abs(double(i) / a.size() - double(j) / b.size()));
  }
  const double size = double(a.size()) * b.size() / (a.size() + b.size());
  double p = 0;
  for (int k = 1; k <= 100; ++k) {
    p += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * size * distance * distance);
  }
  return std::clamp(p, 0.0, 1.0);
}

TEST(KolmogorovSmirnovTest, TellsShiftedSamplesFromEqualOnes) {
  Random random = Random::FromSeed(1);
  std::vector<double> a, b, c;
  for (int i = 0; i < 250; ++i) {
    a.push_back(random.Normal());
    b.push_back(random.Normal());
    c.push_back(random.Normal() + 1.0);
  }
  EXPECT_GT(KolmogorovSmirnovP(a, b), 0.01);
  EXPECT_LT(KolmogorovSmirnovP(a, c), 1e-6);
}

// The heuristic of tools/record_lander.py; see there.
struct Command {
  double turn;
  double lift;
};
Command Heuristic(const float* observation) {
  const double x = observation[0], y = observation[1];
  const double x_speed = observation[2], y_speed = observation[3];
  const double angle = observation[4], spin = observation[5];
  if (observation[6] != 0 || observation[7] != 0) return {0.0, -0.5 * y_speed};
  const double lean = std::clamp(0.5 * x + 1.1 * x_speed, -0.4, 0.4);
  return {0.6 * (lean - angle) - 1.1 * spin, 0.5 * (0.5 * std::abs(x) - y) - 0.55 * y_speed};
}

StepResult StepHeuristically(DiscreteLunarLander& lander, Random& random, float* observation) {
  const auto [turn, lift] = Heuristic(observation);
  int action = 0;
  if (lift > std::abs(turn) && lift > 0.05) {
    action = 2;
  } else if (std::abs(turn) > 0.05) {
    action = turn < 0 ? 3 : 1;
  }
  return lander.Step(action, random, observation);
}

StepResult StepHeuristically(ContinuousLunarLander& lander, Random& random, float* observation) {
  const auto [turn, lift] = Heuristic(observation);
  const float action[] = {static_cast<float>(std::clamp(20 * lift - 1, -1.0, 1.0)),
                          static_cast<float>(std::clamp(-20 * turn, -1.0, 1.0))};
  return lander.Step(action, random, observation);
}

StepResult StepUniformly(DiscreteLunarLander& lander, Random& random, Random& actions,
                         float* observation) {
  return lander.Step(static_cast<int>(actions.Integers(0, 4)), random, observation);
}

StepResult StepUniformly(ContinuousLunarLander& lander, Random& random, Random& actions,
                         float* observation) {
  const float action[] = {static_cast<float>(actions.Uniform(-1, 1)),
                          static_cast<float>(actions.Uniform(-1, 1))};
  return lander.Step(action, random, observation);
}

template <typename Lander>
std::vector<double> Returns(bool heuristic) {
  Lander lander;
  Random actions = Random::FromSeed(9);
  std::vector<double> returns;
  for (int episode = 0; episode < 250; ++episode) {
    Random random = Random::FromSeed(5000 + episode);  // Others than the recorded: independent.
    float observation[Lander::kObservationSize];
    lander.Reset(random, observation);
    double total = 0;
    for (int step = 0; step < 1000; ++step) {
      const StepResult result = heuristic ? StepHeuristically(lander, random, observation)
                                          : StepUniformly(lander, random, actions, observation);
      total += result.reward;
      if (result.terminated) break;
    }
    returns.push_back(total);
  }
  return returns;
}

template <typename Lander>
void ExpectEqualDistributions(const char* environment, bool heuristic) {
  const std::vector<double> ours = Returns<Lander>(heuristic);
  const std::vector<double> theirs =
      RecordedReturns(environment, heuristic ? "heuristic" : "uniform");
  ASSERT_GE(theirs.size(), 200U);
  const double p = KolmogorovSmirnovP(ours, theirs);
  testing::Test::RecordProperty("p", std::to_string(p));
  EXPECT_GT(p, 0.01);
}

TEST(LunarLanderSlowTest, RandomReturnsAreDistributedAsGymnasiums) {
  ExpectEqualDistributions<DiscreteLunarLander>("LunarLander-v3", /*heuristic=*/false);
}

TEST(LunarLanderSlowTest, HeuristicReturnsAreDistributedAsGymnasiums) {
  ExpectEqualDistributions<DiscreteLunarLander>("LunarLander-v3", /*heuristic=*/true);
}

TEST(LunarLanderSlowTest, ContinuousRandomReturnsAreDistributedAsGymnasiums) {
  ExpectEqualDistributions<ContinuousLunarLander>("LunarLanderContinuous-v3",
                                                  /*heuristic=*/false);
}

TEST(LunarLanderSlowTest, ContinuousHeuristicReturnsAreDistributedAsGymnasiums) {
  ExpectEqualDistributions<ContinuousLunarLander>("LunarLanderContinuous-v3", /*heuristic=*/true);
}

// A rare fault that the test above cannot see: legs that throw the lander back when it touches down
// hard. The lowest of 2,700 random returns on Gymnasium was -693; with the fault 1 in 150 was
// lower.
TEST(LunarLanderSlowTest, NoRandomReturnIsLowerThanGymnasiums) {
  DiscreteLunarLander lander;
  Random actions = Random::FromSeed(9);
  for (int episode = 0; episode < 1000; ++episode) {
    Random random = Random::FromSeed(episode);
    float observation[DiscreteLunarLander::kObservationSize];
    lander.Reset(random, observation);
    double total = 0;
    for (int step = 0; step < 1000; ++step) {
      const StepResult result = StepUniformly(lander, random, actions, observation);
      total += result.reward;
      if (result.terminated) break;
    }
    EXPECT_GT(total, -750) << "seed " << episode;
  }
}

TEST(LunarLanderTest, AnEpisodeDependsOnItsStartAndActionsAlone) {
  DiscreteLunarLander used, fresh;
  float observation[8], expected[8];
  Random other = Random::FromSeed(3);
  used.Reset(other, observation);
  for (int step = 0; step < 150; ++step) used.Step(step % 4, other, observation);

  Random random = Random::FromSeed(4), same = Random::FromSeed(4);
  used.Reset(random, observation);
  fresh.Reset(same, expected);
  for (int step = 0; step < 150; ++step) {
    const StepResult a = used.Step(step * 7 % 4, random, observation);
    const StepResult b = fresh.Step(step * 7 % 4, same, expected);
    ASSERT_EQ(a.reward, b.reward);
    ASSERT_TRUE(std::equal(observation, observation + 8, expected)) << "step " << step;
  }
}

TEST(LunarLanderTest, AnEpisodeThatIsNeverResetIsRefusedWhenItsLogIsFull) {
  DiscreteLunarLander lander;
  float observation[8];
  Random random = Random::FromSeed(0);
  lander.Reset(random, observation);
  for (int step = 0; step < LunarLander::kMaxEpisodeSteps; ++step) {
    lander.Step(0, random, observation);
  }
  EXPECT_THROW(lander.Step(0, random, observation), Error);
}

}  // namespace
}  // namespace menger
