// How close to a planner that knows the future does one come that forecasts and reacts?
//
// A day of a chat service, 288 steps of five minutes, after a week of history; every
// predictor with and without reaction, planned to some part of an engine's time.
//
//   tessera_replica_study --seeds 5 --out build   # a table, and replica_study.csv

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/replicas/day_load.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 3> kPredictors = {"constant", "trend", "seasonal"};
constexpr double kAttained = 0.99;
constexpr double kOverhead = 1.10;

struct Row {
  int predictor = 0;
  bool reacts = false;
  int utilization = 100;  // percent
  double attainment = 0;  // of all requests of all days
  double worst = 1;       // day
  double gpu_hours = 0;   // per day
  double overhead = 0;    // over those of the clairvoyant
};

Row RunCell(const std::vector<ServiceDay>& days, double clairvoyant, Row row) {
  double requests = 0, attained = 0;
  for (const ServiceDay& day : days) {
    ServiceSpec spec = day.spec;
    spec.predictor.kind = static_cast<PredictorKind>(row.predictor);
    spec.utilization = row.utilization / 100.0;
    const ReplayOptions options = {.tick = kTickSeconds, .startup = 120, .reacts = row.reacts};
    const ReplayResult replay = *ReplayService(spec, day.loads, options);
    requests += replay.requests;
    attained += replay.attained_requests;
    row.worst = std::min(row.worst, replay.attainment());
    row.gpu_hours += replay.gpu_hours / static_cast<double>(days.size());
  }
  row.attainment = attained / requests;
  row.overhead = row.gpu_hours / clairvoyant;
  return row;
}

std::string Line(const Row& row) {
  const bool good = row.attainment >= kAttained && row.overhead <= kOverhead;
  return absl::StrFormat("%-9s %-3s %4d%%  %7.2f%% %7.2f%%  %8.1f  %+6.1f%% %s\n",
                         kPredictors[static_cast<size_t>(row.predictor)], row.reacts ? "yes" : "no",
                         row.utilization, 100 * row.attainment, 100 * row.worst, row.gpu_hours,
                         100 * (row.overhead - 1), good ? "*" : "");
}

std::string CsvLine(const Row& row) {
  return absl::StrFormat("%s,%d,%d,%.6f,%.6f,%.3f,%.6f\n",
                         kPredictors[static_cast<size_t>(row.predictor)], row.reacts ? 1 : 0,
                         row.utilization, row.attainment, row.worst, row.gpu_hours, row.overhead);
}

int Run(int seeds, const std::filesystem::path& folder) {
  std::vector<ServiceDay> days;
  double clairvoyant = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    days.emplace_back(static_cast<uint64_t>(seed));
    const ReplayResult ideal =
        *ClairvoyantReplay(days.back().spec, days.back().loads, {.tick = kTickSeconds});
    clairvoyant += ideal.gpu_hours / seeds;
  }
  std::printf("clairvoyant: %.1f GPU-hours a day\n\n", clairvoyant);
  std::printf("predictor react  use  attained   worst  GPU-hours  overhead\n");
  std::string csv =
      "predictor,reacts,utilization_percent,attainment,worst_day,gpu_hours,relative_gpu_hours\n";
  Row best;
  for (int predictor = 0; predictor < static_cast<int>(kPredictors.size()); ++predictor) {
    for (const bool reacts : {false, true}) {
      for (const int utilization : {100, 95, 90, 85, 80}) {
        Row row;
        row.predictor = predictor;
        row.reacts = reacts;
        row.utilization = utilization;
        row = RunCell(days, clairvoyant, row);
        std::fputs(Line(row).c_str(), stdout);
        csv += CsvLine(row);
        const bool better = best.gpu_hours == 0 || row.gpu_hours < best.gpu_hours;
        if (row.attainment >= kAttained && better) best = row;
      }
    }
  }
  if (best.gpu_hours > 0) {
    std::printf("\ncheapest with at least %.0f%% attained:\n%s", 100 * kAttained,
                Line(best).c_str());
  }
  std::ofstream out(folder / "replica_study.csv", std::ios::binary);
  out << csv;
  return out.flush() ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  CLI::App app("A day of an LLM service by predictor and reaction.", "tessera_replica_study");
  int seeds = 5;
  std::string folder = ".";
  app.add_option("--seeds", seeds, "days")->check(CLI::Range(1, 10000));
  app.add_option("--out", folder, "folder for replica_study.csv")->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return tessera::Run(seeds, folder);
}
