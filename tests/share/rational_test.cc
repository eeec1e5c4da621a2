#include "tessera/share/rational.h"

#include <gtest/gtest.h>

#include <random>

namespace tessera {
namespace {

TEST(RationalTest, ComparesByValue) {
  EXPECT_TRUE(Compare({1, 3}, {2, 6}) == 0);
  EXPECT_TRUE(Compare({1, 3}, {1, 2}) < 0);
  EXPECT_TRUE(Compare({7, 2}, {10, 3}) > 0);
  EXPECT_TRUE(Compare({0, 5}, {0, 1}) == 0);
  EXPECT_TRUE(Compare({0, 5}, {1, 1000000}) < 0);
}

TEST(RationalTest, AgreesWithCrossProductsWhereTheseFit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto draw = [&random] { return static_cast<int64_t>(random() >> (1 + random() % 62)); };
    const Rational a{draw(), draw() + 1}, b{draw(), draw() + 1};
    const absl::int128 left = a.numerator * b.denominator, right = b.numerator * a.denominator;
    ASSERT_EQ(Compare(a, b) < 0, left < right);
    ASSERT_EQ(Compare(a, b) > 0, left > right);
  }
}

TEST(RationalTest, NeighboursFarBeyondCrossProducts) {
  const absl::int128 huge = absl::int128{1} << 120;
  EXPECT_TRUE(Compare({huge, huge + 1}, {huge + 1, huge + 2}) < 0);
  EXPECT_TRUE(Compare({huge + 1, huge}, {huge + 2, huge + 1}) > 0);
  EXPECT_TRUE(Compare({huge, 3}, {huge, 3}) == 0);
}

}  // namespace
}  // namespace tessera
