// The levels of a division as linear programs, solved by cbc (Debian: coinor-cbc).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "absl/strings/str_format.h"
#include "tests/support/random_cluster.h"
#include "tests/support/siblings_for_tests.h"

namespace tessera {
namespace {

constexpr DominantResourceDivision kAsInThePaper{.work_conserving = false};

// Many independent programs, solved by one run of cbc.
class LinearPrograms {
 public:
  static bool HasSolver() { return std::system("command -v cbc > /dev/null 2>&1") == 0; }

  void Minimize(const std::string& term) { absl::StrAppend(&objective_, " ", term, "\n"); }
  void Constrain(const std::vector<std::string>& terms, const std::string& bound) {
    absl::StrAppend(&constraints_, " c", count_++, ":");
    for (const std::string& term : terms) absl::StrAppend(&constraints_, " ", term, "\n");
    absl::StrAppend(&constraints_, " ", bound, "\n");
  }

  // Values by name; those of 0 may be absent. Empty if there is no optimum.
  std::map<std::string, double> Solve() const {
    const std::string stem = absl::StrCat(testing::TempDir(), "/tessera_division_", getpid());
    const std::string program = stem + ".lp", solution = stem + ".txt";
    std::ofstream(program) << "Minimize\n obj:" << objective_ << "Subject To\n"
                           << constraints_ << "End\n";
    const std::string command =
        absl::StrCat("cbc '", program, "' solve solu '", solution, "' > /dev/null 2>&1");
    const bool ran = std::system(command.c_str()) == 0;
    std::ifstream in(solution);
    std::remove(program.c_str());
    std::remove(solution.c_str());
    if (!ran) return {};
    std::string line;
    std::map<std::string, double> values;
    if (!std::getline(in, line) || !line.starts_with("Optimal")) return {};
    while (std::getline(in, line)) {
      std::istringstream words(line);
      std::string row, name;
      double value = 0;
      if (words >> row >> name >> value) values[name] = value;
    }
    return values;
  }

 private:
  std::string objective_, constraints_;
  int count_ = 0;
};

std::string Term(double factor, const std::string& variable) {
  return absl::StrFormat("%+.12f %s", factor, variable);
}

// Hungry and satisfied siblings without quotas; each needs all of three resources.
struct ProgramCase {
  ProgramCase(RandomCluster& random, bool all_hungry) : siblings({}), hungry(all_hungry) {
    for (int r : kResources) siblings.capacity[r] = 100000000 + random.Below(900000000);
    const int count = 2 + random.Below(5);
    for (int i = 0; i < count; ++i) {
      ResourceVector demand;
      for (int r : kResources) demand[r] = siblings.capacity[r] / 100 * (1 + random.Below(80));
      if (hungry) demand = demand * 100;
      siblings.Add(MakeQueue(absl::StrCat("q", i)), demand).weight.all = 500 + random.Below(2000);
    }
  }

  double weight(size_t i) const {
    return static_cast<double>(*siblings.queues[i].weight.all) / 1000;
  }
  double wanted(size_t i, int r) const { return PartOf(siblings.demands[i][r], r); }
  double PartOf(int64_t amount, int r) const {
    return static_cast<double>(amount) / static_cast<double>(siblings.capacity[r]);
  }
  // How fast the share of `r` grows where dominant shares over weight grow by 1.
  double speed(size_t i, int r) const {
    double dominant = 0;
    for (int s : kResources) dominant = std::max(dominant, wanted(i, s));
    return wanted(i, r) / dominant * weight(i);
  }

  static constexpr std::array<int, 3> kResources = {kCpu, kMemory, kGpu};
  Siblings siblings;
  bool hungry;  // all of them
};

// The least level at which parts min(wanted, speed * level) use up all of `r`: the
// max-min level of one resource. No constraint where all wants fit.
void AddLevel(LinearPrograms& programs, const ProgramCase& c, int r, const std::string& level,
              const std::function<double(size_t)>& speed) {
  double all = 0;
  std::vector<std::string> parts;
  for (size_t i = 0; i < c.siblings.queues.size(); ++i) {
    const std::string part = absl::StrCat("m", i, level);
    all += c.wanted(i, r);
    parts.push_back(Term(1, part));
  }
  if (all <= 1) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    programs.Constrain({parts[i]}, absl::StrFormat("<= %.12f", c.wanted(i, r)));
    programs.Constrain({parts[i], Term(-speed(i), level)}, "<= 0");
  }
  programs.Constrain(parts, ">= 1");
  programs.Minimize(Term(1, level));
}

// The largest common dominant share that fits: where nobody is satisfied and all
// need every resource, the paper's rule in one line.
void AddDominantShare(LinearPrograms& programs, const ProgramCase& c, const std::string& level) {
  for (int r : ProgramCase::kResources) {
    double speed = 0;
    for (size_t i = 0; i < c.siblings.queues.size(); ++i) speed += c.speed(i, r);
    programs.Constrain({Term(speed, level)}, "<= 1");
  }
  programs.Minimize(Term(-1, level));
}

std::string Level(const std::string& kind, size_t k, int r) {
  return absl::StrCat(kind, k, "_", r);
}

// Whether `rule` raised all to `level(r)` at `speed(i, r)`, but not beyond their wants.
template <DivisionRule Rule>
void ExpectLevels(const ProgramCase& c, const Rule& rule, const std::function<double(int)>& level,
                  const std::function<double(size_t, int)>& speed) {
  const std::vector<ResourceVector> shares = c.siblings.Shares(rule);
  for (size_t i = 0; i < shares.size(); ++i) {
    for (int r : ProgramCase::kResources) {
      EXPECT_NEAR(c.PartOf(shares[i][r], r), std::min(c.wanted(i, r), speed(i, r) * level(r)), 1e-6)
          << "queue " << i << " resource " << r;
    }
  }
}

TEST(DivisionProgramsTest, LinearProgramsAgree) {
  if (!LinearPrograms::HasSolver()) GTEST_SKIP() << "no cbc";
  std::vector<ProgramCase> cases;
  LinearPrograms programs;
  for (size_t k = 0; k < static_cast<size_t>(RandomCases(200, 1000)); ++k) {
    RandomCluster random(static_cast<uint32_t>(k));
    cases.emplace_back(random, k % 2 == 0);
    const ProgramCase& c = cases.back();
    for (int r : ProgramCase::kResources) {
      AddLevel(programs, c, r, Level("alone", k, r), [&](size_t i) { return c.weight(i); });
      AddLevel(programs, c, r, Level("level", k, r), [&](size_t i) { return c.speed(i, r); });
    }
    if (c.hungry) AddDominantShare(programs, c, Level("all", k, 0));
  }
  const std::map<std::string, double> solution = programs.Solve();
  ASSERT_FALSE(solution.empty());
  constexpr double kTop = 1e9;  // nothing runs out
  const auto value = [&](const std::string& level) {
    const auto found = solution.find(level);
    return found == solution.end() ? kTop : found->second;
  };
  for (size_t k = 0; k < cases.size(); ++k) {
    SCOPED_TRACE(absl::StrCat("seed ", k));
    const ProgramCase& c = cases[k];
    const auto weight = [&](size_t i, int) { return c.weight(i); };
    const auto speed = [&](size_t i, int r) { return c.speed(i, r); };
    const auto level = [&](int r) { return value(Level("level", k, r)); };
    const auto least = [&](int) { return std::min({level(kCpu), level(kMemory), level(kGpu)}); };
    const auto all = [&](int) { return value(Level("all", k, 0)); };
    ExpectLevels(
        c, PerResourceDivision(), [&](int r) { return value(Level("alone", k, r)); }, weight);
    ExpectLevels(c, DominantResourceDivision(), level, speed);
    // All need every resource, so the first that runs out stops all.
    ExpectLevels(c, kAsInThePaper, least, speed);
    if (c.hungry) ExpectLevels(c, kAsInThePaper, all, speed);
  }
}

}  // namespace
}  // namespace tessera
