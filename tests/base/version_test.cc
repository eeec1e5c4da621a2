#include "tessera/base/version.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tessera {
namespace {

TEST(Version, TextAndNumbersAgree) {
  EXPECT_EQ(kVersion, absl::StrCat(kVersionMajor, ".", kVersionMinor, ".", kVersionPatch));
  EXPECT_EQ(Version(), kVersion);
}

}  // namespace
}  // namespace tessera
