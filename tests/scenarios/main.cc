// Runs scenario files: `tessera_scenarios PATH...`, a path being a file or a
// folder of `*.json`. Prints every miss, then "N passed, N failed";
// exits with 1 on a miss, 2 on wrong usage.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/scenarios/scenario.h"

namespace {

namespace fs = std::filesystem;

struct Tally {
  int passed = 0;
  int failed = 0;
};

// The files that `path` stands for, by name.
std::vector<fs::path> FilesOf(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

void RunFile(const fs::path& path, Tally& tally) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto scenario = in ? tessera::ParseScenario(text) : absl::NotFoundError("cannot be read");
  if (!scenario.ok()) {
    ++tally.failed;
    std::printf("FAIL %s\n  %s\n", path.c_str(), scenario.status().ToString().c_str());
    return;
  }
  const tessera::ScenarioResult result = tessera::RunScenario(*scenario);
  ++(result.misses.empty() ? tally.passed : tally.failed);
  if (!result.misses.empty()) std::printf("FAIL %s\n", scenario->name.c_str());
  for (const std::string& miss : result.misses) std::printf("  %s\n", miss.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: tessera_scenarios PATH...\n");
    return 2;
  }
  Tally tally;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& file : FilesOf(argv[i])) RunFile(file, tally);
  }
  std::printf("%d passed, %d failed\n", tally.passed, tally.failed);
  return tally.failed == 0 ? 0 : 1;
}
