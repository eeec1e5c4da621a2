#include "tessera/cluster/labels.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr auto kIn = SelectorOperator::kIn;
constexpr auto kNotIn = SelectorOperator::kNotIn;
constexpr auto kExists = SelectorOperator::kExists;
constexpr auto kDoesNotExist = SelectorOperator::kDoesNotExist;

TEST(MatchesTest, Table) {
  const Labels labels = {{"zone", "a"}, {"empty", ""}};
  const struct {
    Selector selector;
    bool matches;
  } kCases[] = {
      {{}, true},
      {{{"zone", kIn, {"a"}}}, true},
      {{{"zone", kIn, {"b", "a"}}}, true},
      {{{"zone", kIn, {"b"}}}, false},
      {{{"disk", kIn, {"a"}}}, false},
      {{{"disk", kIn, {""}}}, false},
      {{{"empty", kIn, {""}}}, true},
      {{{"zone", kNotIn, {"a", "b"}}}, false},
      {{{"zone", kNotIn, {"b"}}}, true},
      {{{"disk", kNotIn, {"b"}}}, true},
      {{{"zone", kExists, {}}}, true},
      {{{"empty", kExists, {}}}, true},
      {{{"disk", kExists, {}}}, false},
      {{{"disk", kDoesNotExist, {}}}, true},
      {{{"zone", kDoesNotExist, {}}}, false},
      {{{"zone", kIn, {"a"}}, {"disk", kExists, {}}}, false},
      {{{"zone", kIn, {"a"}}, {"disk", kDoesNotExist, {}}}, true},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    EXPECT_EQ(Matches(kCases[i].selector, labels), kCases[i].matches) << "case " << i;
  }
}

Toleration Equal(std::string key, std::string value) {
  Toleration toleration;
  toleration.key = std::move(key);
  toleration.value = std::move(value);
  return toleration;
}

Toleration Exists(std::string key) {
  Toleration toleration;
  toleration.key = std::move(key);
  toleration.exists = true;
  return toleration;
}

Toleration Only(Toleration toleration, TaintEffect effect) {
  toleration.any_effect = false;
  toleration.effect = effect;
  return toleration;
}

TEST(ToleratesTest, Table) {
  constexpr auto kNoSchedule = TaintEffect::kNoSchedule;
  constexpr auto kNoExecute = TaintEffect::kNoExecute;
  const Taint spot = {"spot", "yes", kNoSchedule};
  const Taint evicting = {"spot", "yes", kNoExecute};
  const Taint bare = {"gpu", "", kNoSchedule};
  const Taint soft = {"old", "", TaintEffect::kPreferNoSchedule};
  const struct {
    std::vector<Toleration> tolerations;
    std::vector<Taint> taints;
    bool tolerates;
  } kCases[] = {
      {{}, {}, true},
      {{}, {soft}, true},
      {{}, {spot}, false},
      {{}, {evicting}, false},
      {{Equal("spot", "yes")}, {spot}, true},
      {{Equal("spot", "no")}, {spot}, false},
      {{Equal("spot", "")}, {spot}, false},
      {{Equal("gpu", "")}, {bare}, true},
      {{Equal("gpu", "yes")}, {spot}, false},
      {{Exists("spot")}, {spot, evicting}, true},
      {{Exists("gpu")}, {spot}, false},
      {{Exists("")}, {spot, evicting, bare}, true},
      {{Only(Exists("spot"), kNoSchedule)}, {spot}, true},
      {{Only(Exists("spot"), kNoSchedule)}, {spot, evicting}, false},
      {{Only(Exists(""), kNoExecute)}, {evicting}, true},
      {{Exists("spot")}, {spot, bare}, false},
      {{Exists("spot"), Equal("gpu", "")}, {spot, bare}, true},
      // Only an `Exists` toleration may leave out the key.
      {{Equal("", "yes")}, {spot}, false},
  };
  for (size_t i = 0; i < std::size(kCases); ++i) {
    EXPECT_EQ(Tolerates(kCases[i].tolerations, kCases[i].taints), kCases[i].tolerates)
        << "case " << i;
  }
}

}  // namespace
}  // namespace tessera
