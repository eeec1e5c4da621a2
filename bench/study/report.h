#ifndef TESSERA_BENCH_STUDY_REPORT_H_
#define TESSERA_BENCH_STUDY_REPORT_H_

// What the runs of the study amount to, as numbers, text, CSV and a picture.

#include <array>
#include <string>
#include <vector>

#include "bench/study/simulate.h"
#include "bench/study/traffic.h"

namespace tessera::study {

// A mean over seeds and its standard error.
struct Estimate {
  double mean = 0;
  double error = 0;
};

// One policy under one mix and load. Leads and relations are between runs of the same
// seed, hence of the same traffic: their errors are far below those of the means.
struct Row {
  int mix = 0;
  int load = 0;
  int policy = 0;
  Estimate acceptance;       // % of the offered slices x lifetime
  Estimate count;            // % of the requests
  Estimate relative;         // acceptance in % of that of the reference
  Estimate acceptance_lead;  // of the gradient over this policy, in % points
  Estimate count_lead;
  Estimate stranded;
  Estimate moves;
};

// `outcomes[policy][seed]` of one mix and load; one row per policy.
std::vector<Row> Summarize(int mix, int load,
                           const std::array<std::vector<Outcome>, kPolicies>& outcomes);

// A table for each mix and load.
std::string Table(const std::vector<Row>& rows);

// Whether the gradient beats the baselines, and how near moves come to the reference.
std::string Verdict(const std::vector<Row>& rows);

std::string Csv(const std::vector<Row>& rows);

// Acceptance relative to the reference against load, one panel per mix.
std::string Svg(const std::vector<Row>& rows, int seeds);

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_REPORT_H_
