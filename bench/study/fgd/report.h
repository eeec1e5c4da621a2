#ifndef TESSERA_BENCH_STUDY_FGD_REPORT_H_
#define TESSERA_BENCH_STUDY_FGD_REPORT_H_

// What the runs of one trace amount to, as text, CSV and a picture.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bench/study/fgd/replay.h"

namespace tessera::study {

// The published value of a policy on a trace at 100 % arrival, per cent unallocated.
struct Published {
  double mean = 0;
  double sd = 0;  // over seeds
};

struct Runs {
  std::string trace;
  std::array<std::vector<Curve>, kPolicies> of;  // by policy, then seed; may be empty
  std::array<std::optional<Published>, kPolicies> published;
  std::vector<double> bound;  // by seed, per cent allocated
};

// The published values of `runs.trace` in `csv` (fgd_expected_summary.csv).
void ReadPublished(const std::string& csv, Runs& runs);

// Unallocated GPUs at 100 % arrival: mean, standard error, sd, lead over FGD on equal
// arrivals, distance to the bound, published value; processor seconds a run.
std::string Table(const Runs& runs);

// Whether means agree with the published ones and Foresight beats FGD, a line each.
// Sets `ok` to false if one does not.
std::string Verdict(const Runs& runs, bool& ok);

// trace, policy, arrived_pct, and mean and sd of allocation and fragments.
std::string CsvHead();
std::string CsvRows(const Runs& runs);

// Unallocated GPUs against arrival.
std::string Svg(const Runs& runs);

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_FGD_REPORT_H_
