// How close to a planner that knows the future does one come that forecasts and reacts?
//
// A day of a chat service, 288 steps of five minutes, after three days of history; every
// predictor with and without reaction, planned to some part of an engine's time, against
// plans that know the load: by step, whose engines take as long to start (what overheads
// refer to); the same with engines that start at once; and one that plans anew every 30
// seconds. None of these has to be 99 % good only, all attain the SLA throughout.
//
//   tessera_replica_study --seeds 10 --out build   # a table, replica_study.{csv,svg}

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/replicas/day_load.h"
#include "tessera/io/replicas_svg.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 3> kPredictors = {"constant", "trend", "seasonal"};
constexpr std::array<int, 7> kUtilizations = {100, 97, 95, 93, 91, 89, 87};  // percent
constexpr double kAttained = 0.99;
constexpr double kOverhead = 1.10;

struct Row {
  int predictor = 0;
  bool reacts = false;
  int utilization = 100;      // percent
  double attainment = 0;      // of all requests of all days
  double worst = 1;           // day
  double gpu_hours = 0;       // per day
  double overhead = 0;        // over those of the clairvoyant
  double worst_overhead = 0;  // of a day

  bool attains() const { return attainment >= kAttained; }
  bool is_good() const { return attains() && overhead <= kOverhead; }
};

struct Day {
  ServiceDay service;
  double clairvoyant = 0;  // GPU-hours
};

// GPU-hours a day of plans that know the load.
double Clairvoyant(const std::vector<Day>& days, int64_t interval, int64_t startup) {
  double gpu_hours = 0;
  for (const Day& day : days) {
    ServiceSpec spec = day.service.spec;
    spec.interval = interval;
    const ReplayOptions options = {.tick = kTickSeconds, .startup = startup};
    gpu_hours += ClairvoyantReplay(spec, day.service.loads, options)->gpu_hours;
  }
  return gpu_hours / static_cast<double>(days.size());
}

ReplayResult Replay(const ServiceDay& day, const Row& row) {
  const ServiceSpec spec =
      day.Plan(static_cast<PredictorKind>(row.predictor), row.utilization / 100.0);
  return *ReplayService(
      spec, day.loads,
      {.tick = kTickSeconds, .startup = ServiceDay::kStartup, .reacts = row.reacts});
}

Row RunCell(const std::vector<Day>& days, Row row) {
  double requests = 0, attained = 0, clairvoyant = 0;
  for (const Day& day : days) {
    const ReplayResult replay = Replay(day.service, row);
    requests += replay.requests;
    attained += replay.attained_requests;
    clairvoyant += day.clairvoyant / static_cast<double>(days.size());
    row.worst = std::min(row.worst, replay.attainment());
    row.worst_overhead = std::max(row.worst_overhead, replay.gpu_hours / day.clairvoyant);
    row.gpu_hours += replay.gpu_hours / static_cast<double>(days.size());
  }
  row.attainment = attained / requests;
  row.overhead = row.gpu_hours / clairvoyant;
  return row;
}

std::string Line(const Row& row) {
  return absl::StrFormat("%-9s %-3s %4d%%  %7.2f%% %7.2f%%  %8.1f  %+6.1f%% %+6.1f%% %s\n",
                         kPredictors[static_cast<size_t>(row.predictor)], row.reacts ? "yes" : "no",
                         row.utilization, 100 * row.attainment, 100 * row.worst, row.gpu_hours,
                         100 * (row.overhead - 1), 100 * (row.worst_overhead - 1),
                         row.is_good() ? "*" : "");
}

std::string CsvLine(const Row& row) {
  return absl::StrFormat("%s,%d,%d,%.6f,%.6f,%.3f,%.6f,%.6f\n",
                         kPredictors[static_cast<size_t>(row.predictor)], row.reacts ? 1 : 0,
                         row.utilization, row.attainment, row.worst, row.gpu_hours, row.overhead,
                         row.worst_overhead);
}

std::vector<Row> RunAll(const std::vector<Day>& days) {
  std::vector<Row> rows;
  std::printf("                      attained            GPU-hours  over the clairvoyant\n");
  std::printf("predictor react  use      mean   worst       mean    mean   worst\n");
  for (int predictor = 0; predictor < static_cast<int>(kPredictors.size()); ++predictor) {
    for (const bool reacts : {false, true}) {
      for (const int utilization : kUtilizations) {
        Row row;
        row.predictor = predictor;
        row.reacts = reacts;
        row.utilization = utilization;
        rows.push_back(RunCell(days, row));
        std::fputs(Line(rows.back()).c_str(), stdout);
      }
    }
  }
  return rows;
}

// How `row` went through a day.
std::string Draw(const ServiceDay& day, const Row& row) {
  const ReplayResult replay = Replay(day, row);
  const ReplayResult ideal = *ClairvoyantReplay(
      day.spec, day.loads, {.tick = kTickSeconds, .startup = ServiceDay::kStartup});
  ReplicaTrace trace = TraceOf(replay, ideal, kTickSeconds, kStepSeconds / kTickSeconds);
  trace.title = "The first day of the study";
  trace.note = absl::StrFormat(
      "%s, %s reaction, planned to %d %%: %.2f %% within the SLA, %+.1f %%"
      " GPU-hours over the plan that knows the load",
      kPredictors[static_cast<size_t>(row.predictor)], row.reacts ? "with" : "without",
      row.utilization, 100 * replay.attainment(), 100 * (replay.gpu_hours / ideal.gpu_hours - 1));
  return DrawReplicaTrace(trace);
}

bool Write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

int Run(int first, int seeds, const std::filesystem::path& folder) {
  std::vector<Day> days;
  for (int seed = first; seed < first + seeds; ++seed) {
    days.push_back({ServiceDay(static_cast<uint64_t>(seed))});
    days.back().clairvoyant = Clairvoyant({days.back()}, kStepSeconds, ServiceDay::kStartup);
  }
  const std::array<double, 3> known = {Clairvoyant(days, kStepSeconds, ServiceDay::kStartup),
                                       Clairvoyant(days, kStepSeconds, 0),
                                       Clairvoyant(days, kTickSeconds, ServiceDay::kStartup)};
  std::printf(
      "GPU-hours a day with the load known: %.1f by steps (%.1f if engines started at "
      "once), %.1f by ticks\n\n",
      known[0], known[1], known[2]);
  const std::vector<Row> rows = RunAll(days);
  std::string csv =
      "predictor,reacts,utilization_percent,attainment,worst_day,gpu_hours,relative_gpu_hours,"
      "worst_relative_gpu_hours\n";
  const Row* best = nullptr;
  for (const Row& row : rows) {
    csv += CsvLine(row);
    if (row.attains() && (best == nullptr || row.gpu_hours < best->gpu_hours)) best = &row;
  }
  if (best != nullptr) {
    std::printf("\ncheapest with at least %.0f%% attained:\n%s", 100 * kAttained,
                Line(*best).c_str());
    std::printf("its GPU-hours over plans that know the load: %+.1f%%, %+.1f%%, %+.1f%%\n",
                100 * (best->gpu_hours / known[0] - 1), 100 * (best->gpu_hours / known[1] - 1),
                100 * (best->gpu_hours / known[2] - 1));
    if (!Write(folder / "replica_study.svg", Draw(days[0].service, *best))) return 1;
  }
  return Write(folder / "replica_study.csv", csv) ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  CLI::App app("A day of an LLM service by predictor and reaction.", "tessera_replica_study");
  int first = 1, seeds = 10;
  std::string folder = ".";
  app.add_option("--first", first, "seed of the first day")->check(CLI::Range(1, 1000000));
  app.add_option("--seeds", seeds, "days")->check(CLI::Range(1, 10000));
  app.add_option("--out", folder, "folder for replica_study.csv and .svg")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return tessera::Run(first, seeds, folder);
}
