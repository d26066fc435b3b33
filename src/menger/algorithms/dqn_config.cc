#include "menger/algorithms/dqn_config.h"

#include "menger/algorithms/schedule.h"

namespace menger {
namespace {

void DeclareReturns(DqnConfig& config, Options& options) {
  options.Add("distribution", &config.distribution,
              {.choices = {"none", "c51", "qr"},
               .consequence = "learn the distribution of returns: as probabilities of fixed "
                              "returns (c51) or as quantiles (qr)"});
  options.Add("atoms", &config.atoms,
              {.minimum = 2,
               .maximum = 10'000,
               .consequence = "c51: returns that a distribution distinguishes"});
  options.Add("value_minimum", &config.value_minimum,
              {.consequence = "c51: the smallest return; smaller ones count as this"});
  options.Add("value_maximum", &config.value_maximum,
              {.consequence = "c51: the largest return; larger ones count as this"});
  options.Add("quantiles", &config.quantiles,
              {.minimum = 1,
               .maximum = 10'000,
               .consequence = "qr: more describe a distribution better; time grows as the square"});
}

void DeclareExploration(DqnConfig& config, Options& options) {
  options.Add("noisy", &config.noisy,
              {.consequence = "noise in the weights explores; set epsilon_start, epsilon_end and "
                              "evaluation_epsilon to 0 with it"});
  options.Add("noisy_sigma", &config.noisy_sigma,
              {.minimum = 0, .consequence = "noise at the start: larger explores more widely"});
  options.Add(
      "noise_per_environment", &config.noise_per_environment,
      {.consequence = "noisy: each environment acts under noise of its own, more varied, at "
                      "the price of acting for each alone"});
  config.epsilon.Declare(options);
}

}  // namespace

void DqnConfig::Declare(Options& options) {
  options.Add("discount", &discount,
              {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
  options.Add("n_step", &n_step,
              {.minimum = 1,
               .maximum = 1000,
               .unit = "steps",
               .consequence = "rewards seen before the value function is asked: more learns "
                              "faster, and from what old policies did"});
  options.Add("double", &double_q,
              {.consequence = "the network chooses the next action, its target values it: less "
                              "overestimation"});
  options.Add("duelling", &duelling,
              {.consequence = "a value of the state and advantages of actions, learned apart"});
  DeclareReturns(*this, options);
  options.Add("huber_delta", &huber_delta,
              {.minimum = 0,
               .above_minimum = true,
               .consequence = "distribution = none: larger errors pull no harder than this; where "
                              "returns are far beyond 1 too small a value can let estimates run "
                              "away, inf is the squared error"});
  options.Add("learning_rate", &learning_rate,
              {.minimum = 0, .consequence = "step size of the optimiser"});
  Schedule::Declare(options, "learning_rate_schedule", &learning_rate_schedule,
                    "the learning rate");
  options.Add("target_every", &target_every,
              {.minimum = 1,
               .unit = "updates",
               .consequence = "how long the network that gives targets stays the same: longer is "
                              "steadier and slower"});
  options.Add("importance_exponent", &importance_exponent,
              {.minimum = 0,
               .maximum = 1,
               .consequence = "how much prioritised draws are corrected at the start of a run; "
                              "grows to 1, all of it, at the end"});
  DeclareExploration(*this, options);
}

}  // namespace menger
