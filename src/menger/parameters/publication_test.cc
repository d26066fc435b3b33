#include "menger/parameters/publication.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

ParameterManifest SmallManifest() {
  ParameterManifest manifest;
  manifest.Add("weight", {2, 3});
  manifest.Add("bias", {3});
  return manifest;
}

TEST(PublicationTest, StartsAtVersionZeroWithZeros) {
  const Publication publication(SmallManifest());
  EXPECT_EQ(publication.Latest()->version().number, 0);
  EXPECT_EQ(publication.Latest()->values().size(), 9U);
  EXPECT_EQ(publication.Latest()->values()[8], 0.0F);
}

TEST(PublicationTest, AReaderKeepsItsVersionWholeWhileNewerOnesAppear) {
  Publication publication(SmallManifest());
  publication.Publish(std::vector<float>(9, 1.0F));
  const auto held = publication.Latest();
  for (int i = 2; i < 10; ++i) publication.Publish(std::vector<float>(9, static_cast<float>(i)));
  EXPECT_EQ(held->version().number, 1);
  for (const float value : held->values()) EXPECT_EQ(value, 1.0F);
  EXPECT_EQ(publication.Latest()->version().number, 9);
}

TEST(PublicationTest, AnotherSizeIsRefused) {
  Publication publication(SmallManifest());
  EXPECT_THROW(publication.Publish(std::vector<float>(8)), Error);
}

TEST(PublicationTest, ARestoredRunCountsOnInItsOwnLife) {
  Publication publication(SmallManifest());
  publication.Publish(std::vector<float>(9, 1.0F));
  publication.Restore({.incarnation = 0, .number = 40}, std::vector<float>(9, 2.0F));
  EXPECT_EQ(publication.Latest()->version().number, 40);
  EXPECT_EQ(publication.Latest()->values()[0], 2.0F);
  EXPECT_EQ(publication.Publish(std::vector<float>(9, 3.0F)).number, 41);
}

TEST(PublicationTest, ReadersNeverSeeAnOldVersionWithOtherValues) {
  Publication publication(SmallManifest());
  for (int i = 0; i < 5; ++i) publication.Publish(std::vector<float>(9, 1.0F));
  const std::vector<float> older(9, 2.0F);
  EXPECT_THROW(publication.Restore({.incarnation = 0, .number = 3}, older), Error);
  EXPECT_EQ(publication.Latest()->version().number, 5);
  // A learner whose readers outlived it goes back in its values, never in its versions.
  const std::int64_t before = publication.Latest()->version().packed();
  publication.Restore({.incarnation = 1, .number = 3}, older);
  EXPECT_GT(publication.Latest()->version().packed(), before);
  EXPECT_EQ(publication.Latest()->values()[0], 2.0F);
}

TEST(PublicationTest, NoReaderEverSeesHalfAVersion) {
  Publication publication(SmallManifest());
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      std::int64_t last = 0;
      while (!stop) {
        const auto blob = publication.Latest();
        if (blob->version().number < last) ++torn;
        last = blob->version().number;
        for (const float value : blob->values()) {
          if (value != static_cast<float>(last)) ++torn;
        }
      }
    });
  }
  for (int i = 1; i <= 2000; ++i) publication.Publish(std::vector<float>(9, static_cast<float>(i)));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
}

TEST(ManifestTest, TextRoundTripAndDifferencesAreNamed) {
  const ParameterManifest manifest = SmallManifest();
  const ParameterManifest copy = ParameterManifest::FromText(manifest.ToText());
  EXPECT_NO_THROW(manifest.CheckEqual(copy, "checkpoint"));
  EXPECT_EQ(copy.Find("bias")->offset, 6);
  ParameterManifest other;
  other.Add("weight", {2, 4});
  try {
    manifest.CheckEqual(other, "checkpoint 'x'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_STREQ(
        error.what(),
        "checkpoint 'x' is of another architecture: it has 'weight' of shape (2, 4) where 'weight' "
        "of shape (2, 3) is expected");
  }
}

}  // namespace
}  // namespace menger
