#include "tessera/resources/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/resources/units.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ParseQuantityTest, NumbersSuffixesAndExponents) {
  struct Case {
    const char* text;
    int64_t scale;
    int64_t expected;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"0", 1, 0},
           {"12", 1000, 12000},
           {"500m", 1000, 500},
           {"2000m", 1, 2},
           {"0.5", kGpuUnitsPerDevice, 3500},
           {".5", 1000, 500},
           {"1.500", 1000, 1500},
           {"64Gi", 1, 64 * kBytesPerGiB},
           {"1.5Ki", 1, 1536},
           {"1e3", 1, 1000},
           {"1E3", 1, 1000},
           {"1E", 1, 1000000000000000000},
           {"25e-1", 1000, 2500},
           {"9007199254740993", 1, 9007199254740993},
           {"0.000000000000000001E", 1, 1},
           {"00.10", 1000, 100},
       }) {
    EXPECT_THAT(ParseQuantity(c.text, c.scale, Rounding::kDown), IsOkAndHolds(c.expected))
        << c.text;
  }
}

TEST(ParseQuantityTest, RequestsRoundUpAndOffersDown) {
  // 0.3333 of 7000 is 2333.1.
  EXPECT_THAT(ParseQuantity("0.3333", 7000, Rounding::kUp), IsOkAndHolds(2334));
  EXPECT_THAT(ParseQuantity("0.3333", 7000, Rounding::kDown), IsOkAndHolds(2333));
  EXPECT_THAT(ParseQuantity("0.1m", 1000, Rounding::kUp), IsOkAndHolds(1));
  EXPECT_THAT(ParseQuantity("0.1m", 1000, Rounding::kDown), IsOkAndHolds(0));
  EXPECT_THAT(ParseQuantity("1.000000000000000001", 1, Rounding::kUp), IsOkAndHolds(2));
}

TEST(ParseQuantityTest, RejectsWhatIsNoQuantity) {
  for (const char* text : {"", "NaN", "inf", "abc", "1e", "5 Gi", "1..2", "1.2.3", "0x10", "Gi",
                           "1Q", "+1", "1e1e1", "."}) {
    EXPECT_THAT(ParseQuantity(text, 1, Rounding::kUp),
                StatusIs(kInvalid, testing::HasSubstr("is not a quantity")))
        << text;
  }
  EXPECT_THAT(ParseQuantity("-1", 1, Rounding::kUp), StatusIs(kInvalid, "\"-1\" is negative"));
  EXPECT_THAT(ParseQuantity("0.1234567890123456789", 1, Rounding::kUp),
              StatusIs(kInvalid, testing::HasSubstr("more than 18 decimal places")));
  for (const char* text : {"1e400", "9223372036854775807", "10E", "99999999999999999999999999999",
                           "1e99999999999", "1000000000000000000000000000000000000000000"}) {
    EXPECT_THAT(ParseQuantity(text, 1, Rounding::kUp),
                StatusIs(kInvalid, testing::HasSubstr("is too large")))
        << text;
  }
}

TEST(FormatQuantityTest, ShortestThatReadsBack) {
  EXPECT_EQ(FormatQuantity(3500, kGpuUnitsPerDevice, Rounding::kUp), "0.5");
  EXPECT_EQ(FormatQuantity(1000, kGpuUnitsPerDevice, Rounding::kUp), "0.142857");
  EXPECT_EQ(FormatQuantity(1000, kGpuUnitsPerDevice, Rounding::kDown), "0.142858");
  EXPECT_EQ(FormatQuantity(14000, kGpuUnitsPerDevice, Rounding::kDown), "2");
  EXPECT_EQ(FormatQuantity(2500, kMillisPerCore, Rounding::kUp), "2.5");
}

TEST(FormatQuantityTest, RoundTripsEveryAmount) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const int64_t amount = static_cast<int64_t>(random() >> (3 + random() % 60)) % kMaxTotal;
    for (const Rounding rounding : {Rounding::kUp, Rounding::kDown}) {
      for (const int64_t scale : {int64_t{1}, kMillisPerCore, kGpuUnitsPerDevice}) {
        const std::string text = FormatQuantity(amount, scale, rounding);
        ASSERT_THAT(ParseQuantity(text, scale, rounding), IsOkAndHolds(amount)) << text;
      }
    }
  }
}

TEST(FormatBytesTest, OneDecimalAtMost) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(64 * kBytesPerGiB), "64 GiB");
  EXPECT_EQ(FormatBytes(1536 * kBytesPerGiB), "1.5 TiB");
}

}  // namespace
}  // namespace tessera
