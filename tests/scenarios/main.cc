// Runs scenario files: `tessera_scenarios [--except NAME,NAME...] PATH...`, a path being a file or
// a folder of `*.json`. Prints every miss, then "N passed, N failed"; exits with 1 on a miss other
// than those that are expected to fail by name, or if one of those passes; 2 on wrong usage.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/scenarios/scenario.h"

namespace {

namespace fs = std::filesystem;

struct Tally {
  int passed = 0;
  int failed = 0;
  std::vector<std::string> surprises;
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

void RunFile(const fs::path& path, const std::vector<std::string>& except, Tally& tally) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto scenario = in ? tessera::ParseScenario(text) : absl::NotFoundError("cannot be read");
  if (!scenario.ok()) {
    ++tally.failed;
    tally.surprises.push_back(path.string());
    std::printf("FAIL %s\n  %s\n", path.c_str(), scenario.status().ToString().c_str());
    return;
  }
  const tessera::ScenarioResult result = tessera::RunScenario(*scenario);
  const bool passes = result.misses.empty();
  ++(passes ? tally.passed : tally.failed);
  const bool expected = std::ranges::find(except, scenario->name) == except.end();
  if (passes != expected) tally.surprises.push_back(scenario->name);
  if (!passes) std::printf("FAIL %s\n", scenario->name.c_str());
  for (const std::string& miss : result.misses) std::printf("  %s\n", miss.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> except;
  int first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--except") {
    except = absl::StrSplit(argv[2], ',');
    first = 3;
  }
  if (argc <= first) {
    std::fprintf(stderr, "usage: tessera_scenarios [--except NAME,NAME...] PATH...\n");
    return 2;
  }
  Tally tally;
  for (int i = first; i < argc; ++i) {
    for (const fs::path& file : FilesOf(argv[i])) RunFile(file, except, tally);
  }
  std::printf("%d passed, %d failed\n", tally.passed, tally.failed);
  for (const std::string& name : tally.surprises) std::printf("unexpected: %s\n", name.c_str());
  return tally.surprises.empty() ? 0 : 1;
}
