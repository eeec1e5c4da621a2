#include "bench/study/report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tessera::study {
namespace {

constexpr int kHeavyLoad = 85;     // from here on the gradient has to lead
constexpr double kSureErrors = 3;  // standard errors that chance hardly makes

// The columns of tables and files, all but the moves.
constexpr const Estimate Row::*kShown[] = {&Row::acceptance, &Row::acceptance_lead, &Row::count,
                                           &Row::count_lead, &Row::relative,        &Row::stranded};

template <typename Value>
Estimate EstimateOf(size_t seeds, const Value& value) {
  double sum = 0;
  double squares = 0;
  for (size_t s = 0; s < seeds; ++s) sum += value(s);
  const double n = static_cast<double>(seeds);
  const double mean = sum / n;
  for (size_t s = 0; s < seeds; ++s) squares += (value(s) - mean) * (value(s) - mean);
  return {mean, seeds > 1 ? std::sqrt(squares / (n - 1) / n) : 0};
}

std::string CellName(const Row& row) {
  return absl::StrCat(kMixes[row.mix].name.data(), " at load ", row.load, " %");
}

bool IsBaseline(const Row& row) {
  return row.policy != kGradient && row.policy != kDefragmentation && row.policy != kReference;
}

// How the gradient fares against all baselines in one measure.
std::string LeadVerdict(const std::vector<Row>& rows, Estimate Row::*lead, const char* measure) {
  int cells = 0;
  int ahead = 0;
  const Row* least = nullptr;
  for (const Row& row : rows) {
    if (!IsBaseline(row) || row.load < kHeavyLoad) continue;
    ++cells;
    if ((row.*lead).mean > kSureErrors * (row.*lead).error) ++ahead;
    if (!least || (row.*lead).mean < (least->*lead).mean) least = &row;
  }
  if (!least) return "";
  return absl::StrFormat(
      "gradient, by %s: ahead by more than %.0f standard errors in %d of %d comparisons at loads "
      "from %d %%; least lead %+.2f +- %.2f (%s, %s)\n",
      measure, kSureErrors, ahead, cells, kHeavyLoad, (least->*lead).mean, (least->*lead).error,
      CellName(*least), kPolicyNames[least->policy].data());
}

}  // namespace

std::vector<Row> Summarize(int mix, int load,
                           const std::array<std::vector<Outcome>, kPolicies>& outcomes) {
  const size_t seeds = outcomes[kReference].size();
  std::vector<Row> rows;
  for (int policy = 0; policy < kPolicies; ++policy) {
    const std::vector<Outcome>& own = outcomes[policy];
    const std::vector<Outcome>& gradient = outcomes[kGradient];
    const std::vector<Outcome>& reference = outcomes[kReference];
    const auto of = [&](const auto& value) { return EstimateOf(seeds, value); };
    Row& row = rows.emplace_back();
    row.mix = mix;
    row.load = load;
    row.policy = policy;
    row.acceptance = of([&](size_t s) { return own[s].acceptance; });
    row.count = of([&](size_t s) { return own[s].count; });
    row.relative = of([&](size_t s) { return 100 * own[s].acceptance / reference[s].acceptance; });
    row.acceptance_lead = of([&](size_t s) { return gradient[s].acceptance - own[s].acceptance; });
    row.count_lead = of([&](size_t s) { return gradient[s].count - own[s].count; });
    row.stranded = of([&](size_t s) { return own[s].stranded; });
    row.moves = of([&](size_t s) { return own[s].moves; });
  }
  return rows;
}

std::string Table(const std::vector<Row>& rows) {
  std::string text;
  const auto show = [](const Estimate& e) {
    return absl::StrFormat("%7.2f +-%5.2f", e.mean, e.error);
  };
  for (const Row& row : rows) {
    if (row.policy == 0) {
      absl::StrAppendFormat(&text, "\n%-27s%15s %16s %16s %16s %16s %16s %9s\n", CellName(row),
                            "slices x life %", "gradient's lead", "requests %", "gradient's lead",
                            "% of reference", "stranded slices", "moves");
    }
    absl::StrAppendFormat(&text, "  %-25s", kPolicyNames[row.policy].data());
    for (const Estimate Row::*value : kShown) text += absl::StrCat("  ", show(row.*value), " ");
    absl::StrAppendFormat(&text, "%9.4f\n", row.moves.mean);
  }
  return text;
}

std::string Verdict(const std::vector<Row>& rows) {
  std::string text = LeadVerdict(rows, &Row::acceptance_lead, "slices x lifetime");
  text += LeadVerdict(rows, &Row::count_lead, "requests");
  const Row* farthest = nullptr;
  const Row* busiest = nullptr;
  for (const Row& row : rows) {
    if (row.policy != kDefragmentation) continue;
    if (!farthest || row.relative.mean < farthest->relative.mean) farthest = &row;
    if (!busiest || row.moves.mean > busiest->moves.mean) busiest = &row;
  }
  absl::StrAppendFormat(&text,
                        "gradient+defrag: at least %.2f +- %.2f %% of the reference (%s), at most "
                        "%.3f moves per accepted slice (%s)\n",
                        farthest->relative.mean, farthest->relative.error, CellName(*farthest),
                        busiest->moves.mean, CellName(*busiest));
  return text;
}

std::string Csv(const std::vector<Row>& rows) {
  std::string text = "mix,load_percent,policy";
  for (const char* name :
       {"acceptance", "acceptance_lead", "count", "count_lead", "relative", "stranded", "moves"}) {
    absl::StrAppend(&text, ",", name, ",", name, "_error");
  }
  text += "\n";
  for (const Row& row : rows) {
    absl::StrAppend(&text, kMixes[row.mix].name.data(), ",", row.load, ",",
                    kPolicyNames[row.policy].data());
    for (const Estimate Row::*value : kShown) {
      absl::StrAppendFormat(&text, ",%.4f,%.4f", (row.*value).mean, (row.*value).error);
    }
    absl::StrAppendFormat(&text, ",%.5f,%.5f\n", row.moves.mean, row.moves.error);
  }
  return text;
}

}  // namespace tessera::study
