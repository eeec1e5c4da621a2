// How much more do 100 GPUs accept when slices are placed by the fragmentation gradient?
//
// Requests for MIG slices of an A100 or H100 80 GB arrive (Poisson), stay for a while
// (exponential) and are rejected when they do not fit. Four mixes of sizes, four loads.
//
//   tessera_mig_study --seeds 100 --out build   # a table, mig_study.csv, mig_study.svg

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/study/report.h"
#include "bench/study/simulate.h"
#include "bench/study/traffic.h"

namespace tessera::study {
namespace {

// All policies under one mix and load, each seed the same traffic for all of them.
std::vector<Row> RunCell(const LayoutTable& layouts, int mix, int load, int seeds) {
  const Policies policies(layouts, kMixes[mix]);
  std::array<std::vector<Outcome>, kPolicies> outcomes;
  for (int seed = 0; seed < seeds; ++seed) {
    const Traffic traffic = MakeTraffic(kMixes[mix], load, seed);
    for (int policy = 0; policy < kPolicies; ++policy) {
      outcomes[policy].push_back(policies.Simulate(traffic, static_cast<Policy>(policy), seed));
    }
  }
  return Summarize(mix, load, outcomes);
}

bool Write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (out.flush()) return true;
  std::fprintf(stderr, "cannot write %s\n", file.c_str());
  return false;
}

int Run(int seeds, const std::filesystem::path& folder) {
  const LayoutTable layouts;
  std::vector<Row> rows;
  for (int mix = 0; mix < static_cast<int>(kMixes.size()); ++mix) {
    for (const int load : kLoads) {
      const std::vector<Row> cell = RunCell(layouts, mix, load, seeds);
      std::fputs(Table(cell).c_str(), stdout);
      std::fflush(stdout);
      rows.insert(rows.end(), cell.begin(), cell.end());
    }
  }
  std::printf("\n%s", Verdict(rows).c_str());
  const bool written = Write(folder / "mig_study.csv", Csv(rows)) &&
                       Write(folder / "mig_study.svg", Svg(rows, seeds));
  return written ? 0 : 1;
}

}  // namespace
}  // namespace tessera::study

int main(int argc, char** argv) {
  CLI::App app("Acceptance of MIG slices on 100 GPUs, by how they are placed.",
               "tessera_mig_study");
  int seeds = 100;
  std::string folder = ".";
  app.add_option("--seeds", seeds, "runs per mix and load")->check(CLI::Range(1, 1000000));
  app.add_option("--out", folder, "folder for mig_study.csv and mig_study.svg")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return tessera::study::Run(seeds, folder);
}
