// Layouts from text: what users write, and what nvidia-smi lists.

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tessera/base/status.h"
#include "tessera/gpu/catalogue.h"
#include "tessera/io/mig_formats.h"

namespace tessera {
namespace {

using Words = std::vector<std::string>;

// All of `text` as a number that is not negative.
std::optional<int> ParseNumber(std::string_view text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  if (number < 0) return std::nullopt;
  return number;
}

absl::StatusOr<int> FindProfile(const GpuModel& model, std::string_view name,
                                std::string_view path) {
  if (const std::optional<int> profile = model.FindProfile(name)) return *profile;
  std::vector<std::string_view> known;
  for (const MigProfile& p : model.profiles) known.push_back(p.name);
  // The layout of another product is a likelier mistake than a slip of the pen.
  Words owners;
  for (const GpuModel& other : GpuCatalogue()) {
    if (other.FindProfile(name)) owners.push_back(other.name);
  }
  std::string hint = DidYouMean(name, known);
  if (!owners.empty()) absl::StrAppend(&hint, " (it is one of ", absl::StrJoin(owners, ", "), ")");
  return InvalidAt(path,
                   absl::StrCat("\"", ToAbsl(name), "\" is no profile of ", model.name, hint));
}

// Adds `instance` to `layout` if it may stand beside the others.
absl::Status AddInstance(const MigTables& tables, Instance instance, std::string_view path,
                         std::vector<Instance>& layout) {
  layout.push_back(instance);
  const absl::Status status = tables.KeyOf(layout, "").status();
  if (status.ok()) return status;
  // The index in `[2]: why` would say less than the path.
  const std::string_view message = ToStd(status.message());
  return InvalidAt(path, message.substr(message.find(": ") + 2));
}

// Goes through the lines of `nvidia-smi mig -lgi`.
class ListingReader {
 public:
  explicit ListingReader(const MigTables& tables) : tables_(tables) {}

  absl::Status Read(std::string_view line) {
    ++number_;
    line = ToStd(absl::StripAsciiWhitespace(ToAbsl(line)));
    if (line.empty()) return absl::OkStatus();
    last_ = number_;
    closed_ = line.find_first_not_of("+-|=") == line.npos;
    if (closed_) return absl::OkStatus();
    if (line.starts_with("No GPU instances found") ||
        line.starts_with("No MIG-enabled devices found")) {
      headed_ = closed_ = true;
      return absl::OkStatus();
    }
    const Words words = absl::StrSplit(ToAbsl(line), absl::ByAnyChar("| \t"), absl::SkipEmpty());
    if (!line.starts_with('|') || !line.ends_with('|')) return Error("is no part of a listing");
    if (words.size() > 1 && words[1] == "MIG") return ReadRow(words);
    const std::string head = absl::StrJoin(words, " ");
    headed_ = headed_ || head == "ID ID Start:Size";
    if (headed_ || head == "GPU instances:" || head == "GPU Name Profile Instance Placement") {
      return absl::OkStatus();
    }
    return Error("is no part of a listing");
  }

  absl::StatusOr<LayoutsByGpu> Finish() && {
    if (last_ == 0) return InvalidAt("", "the listing is empty");
    number_ = last_;
    if (!headed_ || !closed_) return Error("the listing breaks off");
    for (auto& [gpu, layout] : layouts_) std::ranges::sort(layout, {}, &Instance::start);
    return std::move(layouts_);
  }

 private:
  std::string path() const { return absl::StrCat("line ", number_); }
  absl::Status Error(std::string_view message) const { return InvalidAt(path(), message); }

  // GPU, "MIG", profile, its id, the instance's id, start:size.
  absl::Status ReadRow(const Words& words) {
    if (!headed_) return Error("an instance before the head of the table");
    if (words.size() != 6) return Error("an instance has 6 columns");
    const std::optional<int> gpu = ParseNumber(words[0]);
    if (!gpu || *gpu >= kMaxGpusPerNode)
      return Error(absl::StrCat("\"", words[0], "\" is not the number of a GPU"));
    TESSERA_ASSIGN_OR_RETURN(const int profile, FindProfile(tables_.model(), words[2], path()));
    const std::pair<std::string, std::string> placement = absl::StrSplit(words[5], ':');
    const std::optional<int> start = ParseNumber(placement.first);
    const std::optional<int> size = ParseNumber(placement.second);
    if (!start || !size) return Error(absl::StrCat("\"", words[5], "\" is no start:size"));
    const int expected = tables_.model().profiles[static_cast<size_t>(profile)].size;
    if (*size != expected) {
      return Error(absl::StrCat(words[2], " has size ", expected, " on ", tables_.model().name,
                                ", here ", *size, ": the listing is of another model"));
    }
    return AddInstance(tables_, {profile, *start}, path(), layouts_[*gpu]);
  }

  const MigTables& tables_;
  LayoutsByGpu layouts_;
  int number_ = 0;       // of the line, from 1
  int last_ = 0;         // that is not blank
  bool headed_ = false;  // the head of the table is complete
  bool closed_ = false;  // the last line may end the listing
};

}  // namespace

absl::StatusOr<std::vector<Instance>> ParseLayout(std::string_view text, const MigTables& tables) {
  std::vector<Instance> layout;
  if (absl::StripAsciiWhitespace(ToAbsl(text)).empty()) return layout;
  for (absl::string_view part : absl::StrSplit(ToAbsl(text), ',')) {
    const std::string_view instance = ToStd(absl::StripAsciiWhitespace(part));
    const size_t at = instance.rfind('@');
    const std::optional<int> start =
        at == instance.npos ? std::nullopt : ParseNumber(instance.substr(at + 1));
    if (!start) {
      return InvalidAt(instance.empty() ? "\"\"" : instance,
                       "an instance is PROFILE@START, such as 1g.10gb@0");
    }
    TESSERA_ASSIGN_OR_RETURN(const int profile,
                             FindProfile(tables.model(), instance.substr(0, at), instance));
    TESSERA_RETURN_IF_ERROR(AddInstance(tables, {profile, *start}, instance, layout));
  }
  std::ranges::sort(layout, {}, &Instance::start);
  return layout;
}

absl::StatusOr<LayoutsByGpu> ParseMigListing(std::string_view listing, const MigTables& tables) {
  ListingReader reader(tables);
  for (absl::string_view line : absl::StrSplit(ToAbsl(listing), '\n')) {
    TESSERA_RETURN_IF_ERROR(reader.Read(ToStd(line)));
  }
  return std::move(reader).Finish();
}

}  // namespace tessera
