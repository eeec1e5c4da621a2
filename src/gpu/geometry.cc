#include "tessera/gpu/geometry.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/gpu/covering.h"
#include "tessera/base/status.h"
#include "tessera/gpu/enumerate.h"

namespace tessera {
namespace {

constexpr int64_t kMaxLayouts = int64_t{1} << 18;
constexpr size_t kMaxColumns = 4096;
constexpr int64_t kMaxOpenGpus = 64;  // searched at once, which bounds the recursion

// The program of one call. Items are the demanded profiles, largest first; columns the
// maximal multisets of them that one GPU holds, each with its first layout.
struct Program {
  std::vector<int> profiles;                   // [item]
  ItemCounts demand;                           // [item]
  std::vector<ItemCounts> columns;             // [column][item]
  std::vector<std::vector<Instance>> layouts;  // [column]
};

bool Covers(const ItemCounts& outer, const ItemCounts& inner) {
  return std::equal(outer.begin(), outer.end(), inner.begin(), std::greater_equal<>());
}

absl::Status CheckDemand(const GpuModel& model, std::span<const int64_t> demand,
                         std::string_view path) {
  if (demand.size() != model.profiles.size()) {
    return InvalidAt(path, absl::StrCat(demand.size(), " counts for the ", model.profiles.size(),
                                        " profiles of ", model.name));
  }
  for (size_t p = 0; p < demand.size(); ++p) {
    if (demand[p] >= 0 && demand[p] <= kMaxGeometrySlices) continue;
    return InvalidAt(absl::StrCat(ToAbsl(path), "[", p, "]"),
                     absl::StrCat("count ", demand[p], " is not in 0..", kMaxGeometrySlices));
  }
  return absl::OkStatus();
}

// Fills the columns of `program`: the multisets of the maximal layouts that none of the
// others covers, in descending lexicographic order.
absl::Status FillColumns(const MigTables& tables, Program& program) {
  uint32_t alphabet = 0;
  for (const int p : program.profiles) alphabet |= uint32_t{1} << p;
  const auto too_many = [&tables] {
    return absl::ResourceExhaustedError(
        absl::StrCat(tables.model().name, ": too many layouts to plan with"));
  };
  if (CountLayouts(tables, alphabet).states > kMaxLayouts) return too_many();
  std::map<ItemCounts, std::vector<Instance>, std::greater<>> first;
  for (std::vector<Instance>& layout : EnumerateLayouts(tables, alphabet)) {
    LayoutKey key = tables.empty();
    ItemCounts counts(program.profiles.size(), 0);
    for (const Instance& instance : layout) {
      key = tables.Add(key, instance.profile, instance.start);
      const auto item =
          std::find(program.profiles.begin(), program.profiles.end(), instance.profile);
      ++counts[item - program.profiles.begin()];
    }
    if (IsMaximal(tables, key, alphabet)) first.try_emplace(std::move(counts), std::move(layout));
    if (first.size() > kMaxColumns) return too_many();
  }
  for (auto& [counts, layout] : first) {
    // Whatever covers `counts` is greater, and a column by now if nothing covers it.
    const auto covers = [&counts = counts](const ItemCounts& c) { return Covers(c, counts); };
    if (std::any_of(program.columns.begin(), program.columns.end(), covers)) continue;
    program.columns.push_back(counts);
    program.layouts.push_back(std::move(layout));
  }
  return absl::OkStatus();
}

// What remains of `demand` beside `times` of a column.
ItemCounts Without(ItemCounts demand, const ItemCounts& column, int64_t times) {
  for (size_t i = 0; i < demand.size(); ++i) {
    demand[i] = std::max<int64_t>(0, demand[i] - column[i] * times);
  }
  return demand;
}

bool IsZero(const ItemCounts& counts) {
  return std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n == 0; });
}

// Exhaustive search for covers of few columns, with the bounds and the dead ends that it
// has learnt so far.
class CoverSearch {
 public:
  CoverSearch(const Program& program, std::vector<ItemWeights> bounds, int64_t budget)
      : program_(program), bounds_(std::move(bounds)), budget_(budget) {}

  // Whether `gpus` columns cover `demand`; if so, `chosen` are they. When the budget ran
  // out before that was decided, false and `exhausted()`.
  bool Find(const ItemCounts& demand, int64_t gpus, std::vector<size_t>& chosen) {
    if (IsZero(demand)) return true;
    if (LowerBound(demand) > gpus || IsDeadEnd(demand, gpus)) return false;
    if (budget_ == 0) return false;
    --budget_;
    for (const size_t c : Candidates(demand)) {
      chosen.push_back(c);
      if (Find(Without(demand, program_.columns[c], 1), gpus - 1, chosen)) return true;
      chosen.pop_back();
    }
    if (budget_ > 0) dead_ends_[demand] = gpus;
    return false;
  }

  int64_t LowerBound(const ItemCounts& demand) const {
    int64_t bound = 0;
    for (const ItemWeights& weights : bounds_) {
      bound = std::max(bound, ColumnsNeeded(weights, demand));
    }
    return bound;
  }

  bool exhausted() const { return budget_ == 0; }

 private:
  bool IsDeadEnd(const ItemCounts& demand, int64_t gpus) const {
    const auto it = dead_ends_.find(demand);
    return it != dead_ends_.end() && it->second >= gpus;
  }

  // The columns that hold the first item of `demand`, without those that serve no more of
  // it than another; the most useful first by the weights of the tightest bound.
  std::vector<size_t> Candidates(const ItemCounts& demand) const;

  const Program& program_;
  std::vector<ItemWeights> bounds_;  // the first is the tightest at the root
  int64_t budget_;
  std::map<ItemCounts, int64_t> dead_ends_;  // no cover of so many columns, or fewer
};

std::vector<size_t> CoverSearch::Candidates(const ItemCounts& demand) const {
  const size_t item = static_cast<size_t>(
      std::find_if(demand.begin(), demand.end(), [](int64_t n) { return n > 0; }) - demand.begin());
  struct Candidate {
    absl::int128 use;
    ItemCounts served;
    size_t column;
  };
  std::vector<Candidate> candidates;
  for (size_t c = 0; c < program_.columns.size(); ++c) {
    if (program_.columns[c][item] == 0) continue;
    Candidate candidate = {0, program_.columns[c], c};
    for (size_t i = 0; i < demand.size(); ++i) {
      candidate.served[i] = std::min(candidate.served[i], demand[i]);
      candidate.use += absl::int128(bounds_.front().weight[i]) * candidate.served[i];
    }
    candidates.push_back(std::move(candidate));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.use > b.use; });
  std::vector<size_t> columns;
  std::vector<ItemCounts> kept;
  for (Candidate& candidate : candidates) {
    const auto covers = [&](const ItemCounts& other) { return Covers(other, candidate.served); };
    if (std::any_of(kept.begin(), kept.end(), covers)) continue;
    kept.push_back(std::move(candidate.served));
    columns.push_back(candidate.column);
  }
  return columns;
}

// Bounds that need no linear program: by each item alone, and by units.
std::vector<ItemWeights> SimpleBounds(const GpuModel& model, const Program& program) {
  std::vector<ItemWeights> bounds;
  ItemCounts sizes;
  for (const int p : program.profiles) sizes.push_back(model.profiles[p].size);
  bounds.push_back({sizes, 0});
  for (size_t i = 0; i < sizes.size(); ++i) {
    bounds.push_back({ItemCounts(sizes.size(), 0), 0});
    bounds.back().weight[i] = 1;
  }
  for (ItemWeights& bound : bounds) {
    for (const ItemCounts& column : program.columns) {
      int64_t held = 0;
      for (size_t i = 0; i < column.size(); ++i) held += bound.weight[i] * column[i];
      bound.whole = std::max(bound.whole, held);
    }
  }
  return bounds;
}

int64_t Sum(const ItemCounts& times) {
  return std::accumulate(times.begin(), times.end(), int64_t{0});
}

// A cover to fall back on: each time the column that serves the most units, as often as
// all its room is used. O(items * columns) per round, and few rounds: every round leaves
// less of some item than one column holds.
ItemCounts GreedyCover(const Program& program, const ItemCounts& sizes) {
  ItemCounts times(program.columns.size(), 0);
  ItemCounts demand = program.demand;
  while (!IsZero(demand)) {
    size_t best = 0;
    int64_t most = -1;
    for (size_t c = 0; c < program.columns.size(); ++c) {
      int64_t served = 0;
      for (size_t i = 0; i < demand.size(); ++i) {
        served += sizes[i] * std::min(program.columns[c][i], demand[i]);
      }
      if (served > most) best = c;
      most = std::max(most, served);
    }
    int64_t rounds = INT64_MAX;
    for (size_t i = 0; i < demand.size(); ++i) {
      const int64_t held = program.columns[best][i];
      if (held > 0) rounds = std::min(rounds, demand[i] / held);
    }
    rounds = std::max<int64_t>(1, rounds);
    times[best] += rounds;
    demand = Without(std::move(demand), program.columns[best], rounds);
  }
  return times;
}

struct Cover {
  ItemCounts times;  // [column]
  int64_t lower_bound = 0;
};

// Tries to cover the demand by `gpus` columns of which `base` holds the first. kOpen: the
// budget ran out, or too many GPUs would be open.
enum class Attempt { kFound, kRefuted, kOpen };

Attempt Complete(const Program& program, CoverSearch& search, ItemCounts base, int64_t gpus,
                 ItemCounts& times) {
  ItemCounts rest = program.demand;
  for (size_t c = 0; c < base.size(); ++c) {
    rest = Without(std::move(rest), program.columns[c], base[c]);
  }
  const int64_t open = gpus - Sum(base);
  if (open > kMaxOpenGpus) return Attempt::kOpen;
  std::vector<size_t> chosen;
  if (search.Find(rest, open, chosen)) {
    for (const size_t c : chosen) ++base[c];
    times = std::move(base);
    return Attempt::kFound;
  }
  return search.exhausted() ? Attempt::kOpen : Attempt::kRefuted;
}

// `base` with `back` less of each column, where it has so many.
ItemCounts GiveBack(ItemCounts base, int64_t back) {
  for (int64_t& times : base) times = std::max<int64_t>(0, times - back);
  return base;
}

Cover SolveProgram(const GpuModel& model, const Program& program, int64_t budget) {
  // 1. Bounds and the fractional cover.
  std::vector<ItemWeights> bounds = SimpleBounds(model, program);
  Cover cover = {GreedyCover(program, bounds.front().weight), 0};
  ItemCounts base(program.columns.size(), 0);
  if (auto fractional = SolveCovering(program.columns, program.demand)) {
    base = std::move(fractional->times);
    bounds.insert(bounds.begin(), std::move(fractional->weights));
  }
  CoverSearch search(program, std::move(bounds), budget);
  cover.lower_bound = search.LowerBound(program.demand);
  // 2. A good cover, from the whole part of the fractional one.
  for (int64_t gpus = cover.lower_bound; gpus < Sum(cover.times); ++gpus) {
    if (Complete(program, search, base, gpus, cover.times) == Attempt::kFound) break;
  }
  // 3. A better one, or the proof that there is none.
  while (cover.lower_bound < Sum(cover.times)) {
    Attempt attempt = Attempt::kRefuted;
    for (int64_t back = 1; attempt == Attempt::kRefuted; back *= 2) {
      const ItemCounts less = GiveBack(base, back);
      attempt = Complete(program, search, less, cover.lower_bound, cover.times);
      if (attempt != Attempt::kRefuted || Sum(less) > 0) continue;
      ++cover.lower_bound;  // refuted with all columns open
      break;
    }
    if (attempt != Attempt::kRefuted) break;
  }
  return cover;
}

// Takes the slices beyond the demand from the last GPUs that hold them.
void TakeSurplus(int profile, int64_t surplus, std::vector<LayoutShare>& shares) {
  const auto is_it = [profile](const Instance& i) { return i.profile == profile; };
  for (size_t s = shares.size(); s-- > 0 && surplus > 0;) {
    const int64_t held =
        std::count_if(shares[s].instances.begin(), shares[s].instances.end(), is_it);
    if (held == 0) continue;
    const int64_t stripped = std::min(shares[s].gpus, surplus / held);
    const auto split = [&](int64_t gpus, int64_t less) {
      if (gpus == 0 || less == 0) return;
      LayoutShare part = {shares[s].instances, gpus};
      for (int64_t n = 0; n < less; ++n) {
        const auto last = std::find_if(part.instances.rbegin(), part.instances.rend(), is_it);
        part.instances.erase(std::next(last).base());
      }
      shares[s].gpus -= gpus;
      surplus -= gpus * less;
      shares.push_back(std::move(part));
    };
    split(stripped, held);
    split(std::min<int64_t>(shares[s].gpus, 1), std::min(held, surplus));
  }
}

std::vector<LayoutShare> MakeShares(const Program& program, const ItemCounts& times) {
  std::vector<LayoutShare> shares;
  for (size_t c = 0; c < times.size(); ++c) {
    if (times[c] > 0) shares.push_back({program.layouts[c], times[c]});
  }
  for (size_t i = 0; i < program.profiles.size(); ++i) {
    int64_t surplus = -program.demand[i];
    for (size_t c = 0; c < times.size(); ++c) surplus += times[c] * program.columns[c][i];
    TakeSurplus(program.profiles[i], surplus, shares);
  }
  std::map<std::vector<Instance>, int64_t> merged;
  for (LayoutShare& share : shares) merged[std::move(share.instances)] += share.gpus;
  shares.clear();
  for (const auto& [instances, gpus] : merged) {
    if (gpus > 0) shares.push_back({instances, gpus});
  }
  return shares;
}

}  // namespace

absl::StatusOr<GeometryPlan> PlanGeometry(const MigTables& tables, std::span<const int64_t> demand,
                                          std::string_view path, int64_t budget) {
  TESSERA_RETURN_IF_ERROR(CheckDemand(tables.model(), demand, path));
  Program program;
  // Larger profiles have fewer places, so that the search decides on them first.
  for (size_t p = 0; p < demand.size(); ++p) {
    if (demand[p] > 0) program.profiles.push_back(static_cast<int>(p));
  }
  std::stable_sort(program.profiles.begin(), program.profiles.end(), [&tables](int a, int b) {
    return tables.model().profiles[a].size > tables.model().profiles[b].size;
  });
  if (program.profiles.empty()) return GeometryPlan();
  for (const int p : program.profiles) program.demand.push_back(demand[p]);
  TESSERA_RETURN_IF_ERROR(FillColumns(tables, program));
  const Cover cover = SolveProgram(tables.model(), program, budget);
  return GeometryPlan{MakeShares(program, cover.times), Sum(cover.times), cover.lower_bound};
}

}  // namespace tessera
