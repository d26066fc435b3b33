#include "menger/networks/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "menger/base/error.h"

namespace menger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

NetworkSpec PlainSpec() {
  NetworkSpec spec;
  spec.observation = LeafSpec::Box("observation", DataType::kFloat32, {4}, {-1}, {1});
  spec.heads = {{.name = "policy", .width = 2}};
  return spec;
}

std::string TextOfRefusal(const NetworkSpec& spec, int threads = 1) {
  Random random = Random::FromSeed(1);
  try {
    MakeNetwork(spec, random, threads);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(NetworkTest, APerceptronOnTheProcessorIsMadeWithoutTorch) {
  Random random = Random::FromSeed(1);
  const auto network = MakeNetwork(PlainSpec(), random, 1);
  EXPECT_TRUE(network->batch_invariant());
  EXPECT_EQ(network->manifest().size(), 4 * 64 + 64 + 64 * 64 + 64 + 64 * 2 + 2);
}

TEST(NetworkTest, WrongOptionsAreNamedWithWhatWouldBeRight) {
  NetworkSpec spec = PlainSpec();
  spec.options.activation = "tank";
  EXPECT_THAT(TextOfRefusal(spec), AllOf(HasSubstr("network.activation"), HasSubstr("'tanh'")));
  spec = PlainSpec();
  spec.options.kind = "cnn";
  EXPECT_THAT(TextOfRefusal(spec), AllOf(HasSubstr("network.kind"), HasSubstr("nature_cnn")));
  spec = PlainSpec();
  spec.options.hidden = {64, 0};
  EXPECT_THAT(TextOfRefusal(spec), AllOf(HasSubstr("network.hidden"), HasSubstr("size 0")));
  spec = PlainSpec();
  spec.heads.clear();
  EXPECT_THAT(TextOfRefusal(spec), HasSubstr("at least one head"));
  spec = PlainSpec();
  spec.heads.push_back(spec.heads[0]);
  EXPECT_THAT(TextOfRefusal(spec), HasSubstr("two heads"));
  spec.heads[1] = {.name = "value", .width = 0};
  EXPECT_THAT(TextOfRefusal(spec), HasSubstr("'value'"));
  EXPECT_THAT(TextOfRefusal(PlainSpec(), /*threads=*/0), HasSubstr("0 threads"));
}

TEST(NetworkTest, APerceptronRefusesImagesAndNamesWhatReadsThem) {
  NetworkSpec spec = PlainSpec();
  spec.observation = LeafSpec::Box("observation", DataType::kUint8, {4, 84, 84}, {0}, {255});
  EXPECT_THAT(TextOfRefusal(spec), AllOf(HasSubstr("uint8 (4, 84, 84)"), HasSubstr("nature_cnn")));
}

TEST(NetworkTest, AMissingTorchLibraryIsAPreconditionThatSaysHowToGetIt) {
  setenv("MENGER_TORCH_LIBRARY", "/nonexistent/libmenger_torch.so", 1);
  NetworkSpec spec = PlainSpec();
  spec.options.kind = "lstm";
  Random random = Random::FromSeed(1);
  try {
    MakeNetwork(spec, random, 1);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/nonexistent/libmenger_torch.so"),
                                    HasSubstr("make build"), HasSubstr("\"lstm\"")));
  }
  unsetenv("MENGER_TORCH_LIBRARY");
}

TEST(NetworkTest, ItsOptionsAreDeclaredWithLimits) {
  NetworkOptions config;
  Options options("network");
  config.Declare(options);
  options.SetFromText("hidden", "[32, 16]");
  EXPECT_EQ(config.hidden, (std::vector<std::int64_t>{32, 16}));
  EXPECT_THROW(options.SetFromText("hidden", "[0]"), Error);
  EXPECT_THROW(options.SetFromText("kind", "transformer"), Error);
  for (const auto& entry : options.Entries()) EXPECT_FALSE(entry.consequence.empty());
}

}  // namespace
}  // namespace menger
