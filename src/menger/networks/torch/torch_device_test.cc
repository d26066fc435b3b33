// What goes between the host and a device: on the CPU nothing, and the same results all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "menger/base/error.h"
#include "menger/networks/torch/torch_testing.h"
#include "menger/tensor/memory.h"

namespace menger {
namespace {

using testing::HasSubstr;

// Prefetch is a hint: what Forward and Infer are given counts.
void ExpectThatAnnouncementsChangeNothing(const NetworkSpec& spec) {
  const Batch announced(spec, /*rows=*/4, /*steps=*/1, 0);
  const Batch other(spec, /*rows=*/4, /*steps=*/1, 0, /*seed=*/5);
  auto network = Make(spec);
  const std::vector<float> of_announced = Copy(network->Infer(announced.input));
  const std::vector<float> of_other = Copy(network->Infer(other.input));
  const double tolerance = 1e-4;
  ASSERT_GT(std::abs(of_announced[0] - of_other[0]), 10 * tolerance);

  network->Prefetch(announced.input);
  ExpectNear(Copy(network->Infer(other.input)), of_other, tolerance);
  ExpectNear(Copy(network->Forward(announced.input)), of_announced, tolerance);
  ExpectNear(Copy(network->Forward(announced.input)), of_announced, tolerance);
  network->Prefetch(announced.input);
  ExpectNear(Copy(network->Forward(other.input)), of_other, tolerance);

  // Memory that the network gave, filled again right after each Forward.
  const std::size_t bytes = announced.pixels.size();
  const std::unique_ptr<Memory> memory = network->AllocateBatch(bytes);
  NetworkInput input = announced.input;
  input.observations = memory->data();
  std::vector<float> weights = LossWeights(of_announced.size());
  for (int i = 0; i < 20; ++i) {
    std::memcpy(memory->data(), (i % 2 == 0 ? announced : other).pixels.data(), bytes);
    network->Prefetch(input);
    const auto outputs = network->Forward(input);
    ExpectNear(Copy(outputs), i % 2 == 0 ? of_announced : of_other, tolerance);
    network->Backward(AsGradients(outputs, weights));
  }
  network->Prefetch(input);  // Nobody takes it.
}

TEST(TorchDeviceTest, WhatIsAnnouncedChangesNothing) {
  ExpectThatAnnouncementsChangeNothing(SpecOf("nature_cnn", Image({4, 84, 84})));
}

TEST(TorchDeviceTest, ACudaNetworkAgreesWithTheCpuOrSaysWhyThereIsNone) {
  NetworkSpec spec = SpecOf("nature_cnn", Image({4, 84, 84}));
  const Batch batch(spec, /*rows=*/4, /*steps=*/1, 0);
  spec.device = "cuda";
  std::unique_ptr<Network> on_cuda;
  try {
    on_cuda = Make(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("'cuda'"));
    EXPECT_THAT(error.what(), HasSubstr("use --device cpu"));
    GTEST_SKIP() << error.what();
  }
  spec.device = "cpu";
  auto on_cpu = Make(spec);
  for (Network* network : {on_cpu.get(), on_cuda.get()}) {
    const auto outputs = network->Forward(batch.input);
    std::vector<float> weights = LossWeights(Copy(outputs).size());
    network->Backward(AsGradients(outputs, weights));
  }
  ExpectNear(Copy(on_cuda->Infer(batch.input)), Copy(on_cpu->Infer(batch.input)), 1e-2);
  for (std::size_t i = 0; i < on_cpu->gradients().size(); i += 1009) {
    ASSERT_NEAR(on_cuda->gradients()[i], on_cpu->gradients()[i],
                1e-2 + 0.02 * std::abs(on_cpu->gradients()[i]));
  }
  spec.device = "cuda";
  ExpectThatAnnouncementsChangeNothing(spec);
  std::vector<std::thread> threads;  // Each network has streams of its own.
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&spec] { ExpectThatAnnouncementsChangeNothing(spec); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace menger
