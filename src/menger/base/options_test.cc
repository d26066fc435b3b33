#include "menger/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "menger/base/error.h"

namespace menger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Config {
  double discount = 0.99;
  double rate = 1e-3;
  int64_t steps = 1000;
  std::string schedule = "linear";
  bool normalise = true;
  std::vector<int64_t> hidden = {64, 64};
  std::vector<std::string> transforms;
  AutoInt workers;
  std::string device = "cpu";

  void Declare(Options& options) {
    options.Add("discount", &discount,
                {.minimum = 0, .maximum = 1, .consequence = "how far ahead rewards count"});
    options.Add("rate", &rate, {.minimum = 0, .above_minimum = true});
    options.Add("steps", &steps, {.minimum = 1, .unit = "steps"});
    options.Add("schedule", &schedule, {.choices = {"constant", "linear"}});
    options.Add("normalise", &normalise, {});
    options.Add("hidden", &hidden, {.minimum = 1, .maximum = 4096});
    options.Add("transforms", &transforms, {.choices = {"clip", "stack"}});
    options.Add("workers", &workers, {.minimum = 1});
    options.Add("device", &device, {});
  }
};

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() { config_.Declare(options_); }

  std::string Refusal(const std::function<void()>& function) {
    try {
      function();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "nothing was thrown";
  }

  Config config_;
  Options options_{"ppo"};
};

TEST_F(OptionsTest, ValuesReachTheFieldsOfTheirKind) {
  options_.Set("discount", 0.5);
  options_.Set("steps", int64_t{7});
  options_.Set("schedule", std::string("constant"));
  options_.Set("normalise", false);
  options_.Set("hidden", std::vector<int64_t>{8});
  options_.Set("transforms", std::vector<std::string>{"stack", "clip"});
  options_.Set("workers", int64_t{2});
  EXPECT_EQ(config_.discount, 0.5);
  EXPECT_EQ(config_.steps, 7);
  EXPECT_EQ(config_.schedule, "constant");
  EXPECT_FALSE(config_.normalise);
  EXPECT_THAT(config_.hidden, ElementsAre(8));
  EXPECT_THAT(config_.transforms, ElementsAre("stack", "clip"));
  EXPECT_EQ(config_.workers, (AutoInt{.value = 2, .is_auto = false}));
  options_.Set("workers", std::string("auto"));
  EXPECT_TRUE(config_.workers.is_auto);
}

TEST_F(OptionsTest, WholeNumbersAndIntegersStandForEachOther) {
  options_.Set("discount", int64_t{1});
  EXPECT_EQ(config_.discount, 1.0);
  options_.Set("steps", 1e6);
  EXPECT_EQ(config_.steps, 1'000'000);
  options_.Set("transforms", std::vector<int64_t>{});
  options_.Set("hidden", std::vector<std::string>{});
  EXPECT_TRUE(config_.hidden.empty());
  for (const double value : {1.5, 1e300, std::nan(""), 0x1p63}) {
    EXPECT_THAT(Refusal([&] { options_.Set("steps", value); }), HasSubstr("right type"));
  }
}

TEST_F(OptionsTest, TextIsReadAsTheOptionNeedsIt) {
  options_.SetFromText("discount", "1e-3");
  options_.SetFromText("steps", " 2e3 ");
  options_.SetFromText("schedule", "\"constant\"");
  options_.SetFromText("normalise", "false");
  options_.SetFromText("hidden", "[256, 128]");
  options_.SetFromText("transforms", "'stack',clip");
  options_.SetFromText("workers", "4");
  options_.SetFromText("device", "12");
  EXPECT_EQ(config_.discount, 1e-3);
  EXPECT_EQ(config_.steps, 2000);
  EXPECT_EQ(config_.schedule, "constant");
  EXPECT_FALSE(config_.normalise);
  EXPECT_THAT(config_.hidden, ElementsAre(256, 128));
  EXPECT_THAT(config_.transforms, ElementsAre("stack", "clip"));
  EXPECT_EQ(config_.workers.value, 4);
  EXPECT_EQ(config_.device, "12");
  options_.SetFromText("hidden", "32,16");
  EXPECT_THAT(config_.hidden, ElementsAre(32, 16));
  options_.SetFromText("hidden", "[]");
  EXPECT_TRUE(config_.hidden.empty());
  options_.SetFromText("workers", "auto");
  EXPECT_TRUE(config_.workers.is_auto);
}

TEST_F(OptionsTest, ARefusalNamesKeyValueAndWhatWouldBeRightAndChangesNothing) {
  EXPECT_EQ(Refusal([&] { options_.Set("discount", 1.5); }),
            "ppo.discount = 1.5 is not allowed; it takes: number, 0 to 1");
  EXPECT_EQ(config_.discount, 0.99);
  EXPECT_EQ(Refusal([&] { options_.SetFromText("steps", "many"); }),
            "ppo.steps = many is not of the right type; it takes: integer, >= 1");
  EXPECT_EQ(Refusal([&] { options_.Set("rate", 0.0); }),
            "ppo.rate = 0 is not allowed; it takes: number, > 0");
  EXPECT_THAT(Refusal([&] { options_.Set("discount", std::nan("")); }), HasSubstr("not allowed"));
  EXPECT_EQ(Refusal([&] { options_.SetFromText("schedule", "linaer"); }),
            "ppo.schedule = linaer is not allowed (did you mean 'linear'?); it takes: text, "
            "one of constant, linear");
  EXPECT_EQ(Refusal([&] { options_.SetFromText("hidden", "64,0"); }),
            "ppo.hidden = [64, 0] is not allowed; it takes: integers, 1 to 4096");
  EXPECT_THAT(Refusal([&] { options_.SetFromText("hidden", "64,x"); }), HasSubstr("64,x"));
  EXPECT_THAT(Refusal([&] { options_.SetFromText("transforms", "clip,blur"); }),
              HasSubstr("one of clip, stack"));
  EXPECT_THAT(Refusal([&] { options_.SetFromText("normalise", "yes"); }), HasSubstr("bool"));
  EXPECT_THAT(Refusal([&] { options_.SetFromText("workers", "0"); }), HasSubstr(">= 1"));
  EXPECT_THAT(Refusal([&] { options_.SetFromText("workers", "atuo"); }),
              HasSubstr("integer or auto"));
  EXPECT_THAT(config_.hidden, ElementsAre(64, 64));
}

TEST_F(OptionsTest, AnUnknownNameIsAnErrorThatNamesTheNearest) {
  EXPECT_EQ(Refusal([&] { options_.Set("discuont", 1.0); }),
            "there is no option 'ppo.discuont' (did you mean 'ppo.discount'?)");
  EXPECT_THAT(Refusal([&] { options_.Get("momentum"); }),
              HasSubstr("'ppo.momentum'; there are: ppo.discount, ppo.rate"));
  EXPECT_EQ(Options("").Key("seed"), "seed");
}

TEST_F(OptionsTest, EntriesHoldEverythingForATableAndAResolvedConfiguration) {
  options_.Set("discount", 0.9);
  const std::vector<OptionEntry> entries = options_.Entries();
  ASSERT_EQ(entries.size(), 9u);
  const OptionEntry& discount = entries[0];
  EXPECT_EQ(discount.key, "ppo.discount");
  EXPECT_EQ(discount.type, "number");
  EXPECT_EQ(ToText(discount.default_value), "0.99");
  EXPECT_EQ(ToText(discount.value), "0.9");
  EXPECT_EQ(discount.allowed, "0 to 1");
  EXPECT_EQ(discount.consequence, "how far ahead rewards count");
  EXPECT_EQ(entries[2].unit, "steps");
  EXPECT_EQ(ToText(entries[5].value), "[64, 64]");
  EXPECT_EQ(ToText(entries[7].value), "auto");
  EXPECT_TRUE(options_.Contains("workers"));
  EXPECT_FALSE(options_.Contains("worker"));
}

TEST_F(OptionsTest, WrittenBackValuesAreAcceptedAgain) {
  options_.Set("workers", int64_t{3});
  options_.Set("rate", 2.5e-4);
  Config other;
  Options copy("ppo");
  other.Declare(copy);
  for (const OptionEntry& entry : options_.Entries()) copy.Set(entry.name, entry.value);
  EXPECT_EQ(other.workers, config_.workers);
  EXPECT_EQ(other.rate, 2.5e-4);
  Config third;
  Options from_text("ppo");
  third.Declare(from_text);
  for (const OptionEntry& entry : options_.Entries()) {
    from_text.SetFromText(entry.name, ToText(entry.value));
  }
  EXPECT_EQ(third.rate, 2.5e-4);
  EXPECT_EQ(third.hidden, config_.hidden);
}

TEST(OptionsDeclarationTest, ContradictoryDeclarationsAreInternalErrors) {
  double value = 2;
  Options options;
  options.Add("value", &value, {.minimum = 0});
  try {
    options.Add("value", &value, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
  }
  EXPECT_THROW(options.Add("other", &value, {.maximum = 1}), Error);
}

}  // namespace
}  // namespace menger
