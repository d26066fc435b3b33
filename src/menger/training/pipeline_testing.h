#pragma once

namespace menger {

// A small run of DQN on CartPole, for tests of pipelines: it takes a second.
inline constexpr const char* kPipelineRecipe = R"(
environment = "CartPole-v1"
algorithm = "dqn"
steps = 6_000
learner_threads = 1
[collector]
kind = "serial"
workers = 1
environments = 2
horizon = 4
[topology]
collectors = 2
[network]
hidden = [16]
[dqn]
n_step = 3
[replay]
capacity = 1_000
min_size = 500
batch_size = 32
[evaluation]
every = 2_000
episodes = 2
)";

}  // namespace menger
