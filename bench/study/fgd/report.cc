#include "bench/study/fgd/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace tessera::study {
namespace {

constexpr size_t kFull = 100;  // % arrived

// Of numbers, one a seed.
struct Sample {
  double mean = 0;
  double sd = 0;
  double error = 0;  // of the mean
};

template <typename Value>
Sample SampleOf(size_t seeds, const Value& value) {
  Sample sample;
  for (size_t s = 0; s < seeds; ++s) sample.mean += value(s) / static_cast<double>(seeds);
  for (size_t s = 0; s < seeds; ++s) {
    sample.sd += (value(s) - sample.mean) * (value(s) - sample.mean);
  }
  if (seeds > 1) {
    sample.sd = std::sqrt(sample.sd / static_cast<double>(seeds - 1));
    sample.error = sample.sd / std::sqrt(static_cast<double>(seeds));
  }
  return sample;
}

Sample Unallocated(const std::vector<Curve>& curves, size_t arrived = kFull) {
  return SampleOf(curves.size(), [&](size_t s) { return 100 - curves[s].allocated[arrived]; });
}

// How much less than FGD a policy leaves, seed by seed.
Sample LeadOverFgd(const Runs& runs, int policy) {
  const std::vector<Curve>& own = runs.of[policy];
  const std::vector<Curve>& fgd = runs.of[kFgd];
  return SampleOf(std::min(own.size(), fgd.size()),
                  [&](size_t s) { return own[s].allocated[kFull] - fgd[s].allocated[kFull]; });
}

// As the acceptance gates have it: on default those of the reference, three published
// sd rounded; elsewhere 0.5 or three sd.
double Tolerance(const Runs& runs, int policy) {
  if (runs.trace == "default" && policy == kFgd) return 0.35;
  if (runs.trace == "default" && policy == kBestFit) return 0.45;
  return std::max(0.5, 3 * runs.published[policy]->sd);
}

}  // namespace

void ReadPublished(const std::string& csv, Runs& runs) {
  // trace,policy,arrived_pct,n_seeds,alloc_mean,alloc_sd,...
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(csv, '\n'))) {
    const std::vector<std::string> field = absl::StrSplit(line, ',');
    if (field.size() < 6 || field[0] != runs.trace || field[2] != "100") continue;
    double mean = 0, sd = 0;
    if (!absl::SimpleAtod(field[4], &mean) || !absl::SimpleAtod(field[5], &sd)) continue;
    for (int p = 0; p < kPolicies; ++p) {
      if (kPolicyNames[p] == field[1]) runs.published[p] = {100 - mean, sd};
    }
  }
}

std::string Table(const Runs& runs) {
  const Sample bound = SampleOf(runs.bound.size(), [&](size_t s) { return 100 - runs.bound[s]; });
  std::string text = absl::StrFormat(
      "\n%s: GPUs unallocated at 100 %% arrival, %% of all; no placement can leave less than "
      "%.2f\n  %-18s%16s %6s %17s %9s %10s %7s %9s\n",
      runs.trace, bound.mean, "policy", "mean", "sd", "less than FGD", "to bound", "published",
      "diff", "s a run");
  for (int p = 0; p < kPolicies; ++p) {
    const std::vector<Curve>& curves = runs.of[p];
    if (curves.empty()) continue;
    const Sample sample = Unallocated(curves);
    absl::StrAppendFormat(&text, "  %-18s%7.2f +- %5.2f %6.2f", std::string(kPolicyNames[p]),
                          sample.mean, sample.error, sample.sd);
    if (runs.of[kFgd].empty() || p == kFgd) {
      text += std::string(18, ' ');
    } else {
      const Sample lead = LeadOverFgd(runs, p);
      absl::StrAppendFormat(&text, "  %+7.2f +- %5.2f", lead.mean, lead.error);
    }
    absl::StrAppendFormat(&text, " %9.2f", sample.mean - bound.mean);
    if (runs.published[p]) {
      absl::StrAppendFormat(&text, " %10.2f %+7.2f", runs.published[p]->mean,
                            sample.mean - runs.published[p]->mean);
    } else {
      text += std::string(19, ' ');
    }
    absl::StrAppendFormat(&text, " %9.3f\n", SampleOf(curves.size(), [&](size_t s) {
                                               return curves[s].seconds;
                                             }).mean);
  }
  return text;
}

std::string Verdict(const Runs& runs, bool& ok) {
  std::string text;
  for (int p = 0; p < kPolicies; ++p) {
    if (!runs.published[p] || runs.of[p].empty()) continue;
    const double off = Unallocated(runs.of[p]).mean - runs.published[p]->mean;
    const bool agrees = std::abs(off) <= Tolerance(runs, p);
    ok = ok && agrees;
    if (!agrees) {
      absl::StrAppendFormat(&text, "%s: %s is off the published mean by %.2f\n", runs.trace,
                            std::string(kPolicyNames[p]), off);
    }
  }
  // FGD, best fit, {packing, clustering}, dot product, random: in this order.
  constexpr std::array<std::pair<Policy, Policy>, 6> kBetter = {{{kFgd, kBestFit},
                                                                 {kBestFit, kPacking},
                                                                 {kBestFit, kClustering},
                                                                 {kPacking, kDotProduct},
                                                                 {kClustering, kDotProduct},
                                                                 {kDotProduct, kRandom}}};
  for (const auto& [better, worse] : kBetter) {
    if (runs.trace != "default" || runs.of[better].empty() || runs.of[worse].empty()) continue;
    if (Unallocated(runs.of[better]).mean < Unallocated(runs.of[worse]).mean) continue;
    ok = false;
    absl::StrAppendFormat(&text, "default: %s is not ahead of %s\n",
                          std::string(kPolicyNames[better]), std::string(kPolicyNames[worse]));
  }
  if (runs.of[kFgd].empty() || runs.of[kForesight].empty()) return text;
  const Sample lead = LeadOverFgd(runs, kForesight);
  const bool leads = lead.mean > 2 * lead.error;
  ok = ok && leads;
  absl::StrAppendFormat(&text, "%s: Foresight leaves %.2f +- %.2f less than FGD%s\n", runs.trace,
                        lead.mean, lead.error,
                        leads ? "" : ", which is not above two standard errors");
  return text;
}

std::string CsvHead() {
  return "trace,policy,arrived_pct,n_seeds,alloc_mean,alloc_sd,frag_of_total_mean,"
         "frag_of_idle_mean\n";
}

std::string CsvRows(const Runs& runs) {
  std::string text;
  for (int p = 0; p < kPolicies; ++p) {
    const std::vector<Curve>& curves = runs.of[p];
    for (size_t a = 0; !curves.empty() && a <= kArrivedPercent; ++a) {
      const Sample idle = Unallocated(curves, a);
      const Sample fragments =
          SampleOf(curves.size(), [&](size_t s) { return curves[s].fragments[a]; });
      absl::StrAppendFormat(&text, "%s,\"%s\",%d,%d,%.3f,%.3f,%.3f,%.3f\n", runs.trace,
                            std::string(kPolicyNames[p]), a, curves.size(), 100 - idle.mean,
                            idle.sd, fragments.mean, 100 * fragments.mean / idle.mean);
    }
  }
  return text;
}

}  // namespace tessera::study
