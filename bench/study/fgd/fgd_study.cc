// How much of a cluster's GPUs can be allocated, by the scorer that places the pods?
//
// A production trace (openb; Weng et al., USENIX ATC '23) arrives pod by pod in random
// order until demand is 130 % of the GPUs; who does not fit is turned away. The six
// published policies, by the published rules but with random numbers of our own, and
// tessera's `Foresight`, with the same information.
//
//   tessera_fgd_study --trace all --seeds 10 --out build

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/study/fgd/bound.h"
#include "bench/study/fgd/replay.h"
#include "bench/study/fgd/report.h"
#include "bench/study/fgd/trace.h"

namespace tessera::study {
namespace {

constexpr int kFirstSeed = 42;
const std::vector<std::string> kTraces = {"default", "gpuspec33", "multigpu50", "gpushare100"};

// Every policy on the same arrivals.
Runs RunTrace(const Trace& trace, int seeds, const std::vector<int>& policies) {
  Runs runs;
  runs.trace = trace.name;
  for (int s = kFirstSeed; s < kFirstSeed + seeds; ++s) {
    const uint64_t seed = static_cast<uint64_t>(s);
    const std::vector<int> arrivals = Arrivals(trace, seed, kArrivedPercent);
    runs.bound.push_back(BoundPercent(trace, UpToCapacity(trace, arrivals)));
    for (int policy : policies) {
      runs.of[policy].push_back(Replay(trace, arrivals, static_cast<Policy>(policy), seed));
    }
  }
  return runs;
}

bool Write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (out.flush()) return true;
  std::fprintf(stderr, "cannot write %s\n", file.c_str());
  return false;
}

int Run(const std::filesystem::path& data, const std::vector<std::string>& traces, int seeds,
        const std::vector<int>& policies, const std::filesystem::path& out) {
  const auto published = ReadFile(data / "fgd_expected_summary.csv");
  if (!published.ok()) std::printf("no published values in %s to compare with\n", data.c_str());
  std::string csv = CsvHead();
  std::string verdict;
  bool good = true;
  for (const std::string& name : traces) {
    const auto trace = ReadTrace(data, name);
    if (!trace.ok()) {
      std::fprintf(stderr,
                   "%s\nThe trace is not part of this repository; --data names the folder "
                   "with the CSV files of openb (clusterdata, cluster-trace-gpu-v2023).\n",
                   std::string(trace.status().message()).c_str());
      return 1;
    }
    Runs runs = RunTrace(*trace, seeds, policies);
    if (published.ok()) ReadPublished(*published, runs);
    std::fputs(Table(runs).c_str(), stdout);
    std::fflush(stdout);
    verdict += Verdict(runs, good);
    csv += CsvRows(runs);
    if (!Write(out / absl::StrCat("fgd_study_", name, ".svg"), Svg(runs))) return 1;
  }
  std::printf("\n%s", verdict.c_str());
  if (!Write(out / "fgd_study.csv", csv)) return 1;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tessera::study

int main(int argc, char** argv) {
  using tessera::study::kPolicies;
  using tessera::study::kPolicyNames;
  CLI::App app("GPUs allocated on the openb trace, by how pods are placed.", "tessera_fgd_study");
  std::string data = "../shared/data", out = ".";
  std::vector<std::string> traces = {"default"}, names = {"all"};
  int seeds = 10;
  app.add_option("--data", data, "folder with the CSV files of the trace");
  app.add_option("--trace", traces, "openb_pod_list_<trace>.csv, or `all` four of the study");
  app.add_option("--seeds", seeds, "runs per policy")->check(CLI::Range(1, 100000));
  app.add_option("--policy", names, "policies by name, or `all`");
  app.add_option("--out", out, "folder for fgd_study.csv and fgd_study_<trace>.svg")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  if (traces == std::vector<std::string>{"all"}) traces = tessera::study::kTraces;
  std::vector<int> policies;
  for (int p = 0; p < kPolicies; ++p) {
    const auto is_named = [p](const std::string& name) {
      return name == "all" || name == kPolicyNames[p];
    };
    if (std::ranges::any_of(names, is_named)) policies.push_back(p);
  }
  if (policies.empty()) {
    std::fprintf(stderr, "no policy of that name; there are:\n");
    for (const std::string_view name : kPolicyNames) std::fprintf(stderr, "  %s\n", name.data());
    return 1;
  }
  return tessera::study::Run(data, traces, seeds, policies, out);
}
