#pragma once

#include <cstdint>
#include <vector>

#include "menger/algorithms/dqn_config.h"
#include "menger/base/options.h"
#include "menger/environments/environment.h"

namespace menger {

// What a recipe that names an environment and an algorithm is given in all sections: settings with
// which the algorithm learns tasks of that kind (docs/performance.md, "Defaults", measures them).
// They depend on the kind of observation (frames: among the leaves one uint8 image, 36 pixels high
// and wide at least; or numbers), the kind of action and the steps of the run, and on
// nothing of the machine. A slab is at most a twentieth of the run, so that short ones learn, too.
//
// An algorithm's own options are in section kOwnSection, so that one with a name of its own takes
// the defaults of its kin: DefaultsOf puts in its section.
//
// Sources: Schulman et al. 2017 and Stable-Baselines3's defaults (PPO, numbers), Huang et al. 2022
// (PPO, frames; normalisation for continuous actions), Mnih et al. 2016 as in OpenAI Baselines
// (A2C), Mnih et al. 2015 (DQN, frames), CleanRL's for classic control (DQN, numbers), Kapturowski
// et al. 2019 (R2D2, frames) and what the papers of SAC and TD3 have in common.
std::vector<OptionDefault> PpoDefaults(const EnvironmentSpec& environment, std::int64_t steps);
std::vector<OptionDefault> A2cDefaults(const EnvironmentSpec& environment, std::int64_t steps);
// Of algorithms that learn values of actions; DQN's say more, about the loss of its distribution.
std::vector<OptionDefault> ValueDefaults(const EnvironmentSpec& environment, std::int64_t steps);
std::vector<OptionDefault> DqnDefaults(const EnvironmentSpec& environment, std::int64_t steps,
                                       const DqnConfig& config);
// Of those that learn values from sequences, with a memory.
std::vector<OptionDefault> SequenceDefaults(const EnvironmentSpec& environment, std::int64_t steps);
// SAC and TD3.
std::vector<OptionDefault> PathwiseDefaults(const EnvironmentSpec& environment, std::int64_t steps);

inline constexpr const char* kOwnSection = "(the algorithm's own)";

// The defaults with those of kOwnSection in the section of `own`, an algorithm's declared options;
// what it does not declare is left out.
std::vector<OptionDefault> DefaultsOf(const Options& own, std::vector<OptionDefault> defaults);

}  // namespace menger
