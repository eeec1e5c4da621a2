#include "src/placement/cover_search.h"

#include <algorithm>
#include <map>

#include "tessera/resources/units.h"

namespace tessera {
namespace {

constexpr size_t kMaxDemands = 64;
constexpr size_t kMaxBundles = 4096;  // of a cell
// The search is recursive, one level for each bundle that may be used or not.
constexpr size_t kMaxDepth = 4000;
// Keeps sums of weights within 63 bits for every count of pods and nodes.
constexpr int64_t kHeaviest = 1 << 20;

// Scales weights down to at most `kHeaviest`; any weights make a valid bound.
void Scale(std::vector<int64_t>& weights) {
  const int64_t largest = *std::ranges::max_element(weights);
  const int64_t divisor = largest / kHeaviest + 1;
  if (divisor > 1) {
    for (int64_t& w : weights) w /= divisor;
  }
}

}  // namespace

CoverSearch::CoverSearch(NodeClasses& classes, std::span<const Demand> demands, int64_t& budget)
    : classes_(classes), demands_(demands.begin(), demands.end()), budget_(budget) {}

bool CoverSearch::Spend() {
  if (--budget_ >= 0) return true;
  undecided_ = true;
  return false;
}

Verdict CoverSearch::Run() {
  if (demands_.size() > kMaxDemands) return Verdict::kUndecided;
  // 1. What each demand finds alone.
  MakeCells();
  for (size_t d = 0; d < demands_.size(); ++d) {
    int64_t most = 0;
    for (const Cell& cell : cells_) {
      if (((cell.demands >> d) & 1) == 0) continue;
      const int each = classes_.at(cell.node_class).most[At(demands_[d].type)];
      most += int64_t{each} * static_cast<int64_t>(cell.nodes.size());
    }
    if (most < demands_[d].need) return Verdict::kNo;
  }
  // 2. What nodes take together.
  for (Cell& cell : cells_) {
    if (!FillBundles(cell)) return Verdict::kUndecided;
  }
  std::ranges::stable_sort(cells_, {}, [](const Cell& cell) { return cell.bundles.size(); });
  MakeWeightings();
  WeighCells();
  return ChooseBundles();
}

// Nodes with one bundle take it; for the others it is searched.
Verdict CoverSearch::ChooseBundles() {
  for (const Cell& cell : cells_) uses_.emplace_back(cell.bundles.size(), 0);
  Open open;
  for (const Demand& demand : demands_) open.push_back(demand.need);
  size_t first = 0, depth = 0;
  for (; first < cells_.size() && cells_[first].bundles.size() == 1; ++first) {
    uses_[first][0] = static_cast<int>(cells_[first].nodes.size());
    for (size_t d = 0; d < open.size(); ++d) {
      open[d] -= int64_t{uses_[first][0]} * cells_[first].bundles[0][d];
    }
  }
  const int left = first == cells_.size() ? 0 : static_cast<int>(cells_[first].nodes.size());
  if (IsTooHeavy(first, left, open)) {
    return classes_.undecided() ? Verdict::kUndecided : Verdict::kNo;
  }
  for (size_t c = first; c < cells_.size(); ++c) depth += cells_[c].bundles.size() + 1;
  if (depth > kMaxDepth) return Verdict::kUndecided;
  if (Cover(first, 0, left, open)) {
    WriteCover();
    return Verdict::kYes;
  }
  return undecided_ || classes_.undecided() ? Verdict::kUndecided : Verdict::kNo;
}

void CoverSearch::MakeCells() {
  NodeRange all = demands_[0].range;
  for (const Demand& d : demands_) {
    all.begin = std::min(all.begin, d.range.begin);
    all.end = std::max(all.end, d.range.end);
  }
  all = Intersect(all, classes_.range());
  std::map<std::pair<int, uint64_t>, size_t> known;
  for (int n = all.begin; n < all.end; ++n) {
    const int c = classes_.class_of(n);
    if (c == NodeClasses::kNone) continue;
    const NodeClass& at = classes_.at(c);
    uint64_t serves = 0;
    for (size_t d = 0; d < demands_.size(); ++d) {
      const Demand& demand = demands_[d];
      const bool may = demand.range.contains(NodeId(n)) && at.most[At(demand.type)] > 0 &&
                       (!demand.model.valid() || demand.model == at.model);
      if (may) serves |= uint64_t{1} << d;
    }
    if (serves == 0) continue;
    const auto [it, inserted] = known.try_emplace({c, serves}, cells_.size());
    if (inserted) cells_.push_back({c, serves, {}, {}, {}});
    cells_[it->second].nodes.push_back(n);
  }
}

bool CoverSearch::Fits(const Cell& cell, const Counts& bundle) {
  std::vector<int> by_type(classes_.types().size());
  for (size_t d = 0; d < bundle.size(); ++d) by_type[At(demands_[d].type)] += bundle[d];
  const Verdict verdict = classes_.Fits(cell.node_class, by_type);
  if (verdict == Verdict::kUndecided) undecided_ = true;
  return verdict == Verdict::kYes;
}

bool CoverSearch::FillBundles(Cell& cell) {
  std::vector<int> demands;
  for (size_t d = 0; d < demands_.size(); ++d) {
    if (((cell.demands >> d) & 1) != 0) demands.push_back(static_cast<int>(d));
  }
  Counts bundle(demands_.size());
  Enumerate(cell, demands, 0, bundle);
  if (undecided_ || cell.bundles.size() > kMaxBundles) return false;
  // Bundles that take much of what is scarce are tried first.
  const NodeClass& c = classes_.at(cell.node_class);
  std::ranges::stable_sort(cell.bundles, std::greater(), [&](const Counts& b) {
    int64_t worth = 0;
    for (int d : demands) worth += kHeaviest * b[At(d)] / c.most[At(demands_[At(d)].type)];
    return worth;
  });
  return true;
}

// Extends `bundle` by counts of `demands[at]` and those after it.
void CoverSearch::Enumerate(Cell& cell, std::span<const int> demands, size_t at, Counts& bundle) {
  if (!Spend() || cell.bundles.size() > kMaxBundles) return;
  const size_t d = At(demands[at]);
  const int most =
      std::min(demands_[d].need, classes_.at(cell.node_class).most[At(demands_[d].type)]);
  const bool last = at + 1 == demands.size();
  for (bundle[d] = last ? most : 0; bundle[d] >= 0 && bundle[d] <= most;
       bundle[d] += last ? -1 : 1) {
    if (!Fits(cell, bundle)) {
      if (last) continue;
      break;
    }
    if (!last) {
      Enumerate(cell, demands, at + 1, bundle);
      continue;
    }
    if (IsMaximal(cell, demands.first(at), bundle)) cell.bundles.push_back(bundle);
    break;
  }
  bundle[d] = 0;
}

// Whether none of `demands` could have a pod more.
bool CoverSearch::IsMaximal(const Cell& cell, std::span<const int> demands, Counts& bundle) {
  for (int i : demands) {
    const size_t d = At(i);
    if (bundle[d] == demands_[d].need) continue;
    ++bundle[d];
    const bool more = Fits(cell, bundle);
    --bundle[d];
    if (more) return false;
  }
  return true;
}

void CoverSearch::MakeWeightings() {
  const size_t count = demands_.size();
  for (size_t d = 0; d < count; ++d) {
    weightings_.emplace_back(count, 0)[d] = 1;
  }
  if (count == 1) return;
  weightings_.emplace_back(count, 1);
  // By each amount, and by what part of an empty cell a pod takes.
  const std::span<const PodType> types = classes_.types();
  std::vector<int64_t> parts, gpus;
  for (const Demand& demand : demands_) {
    int largest = 1;
    int64_t units = 0;
    for (const Cell& cell : cells_) {
      const NodeClass& c = classes_.at(cell.node_class);
      largest = std::max(largest, c.most[At(demand.type)]);
      if (c.most[At(demand.type)] > 0) units = classes_.UnitsOn(demand.type, c.model);
    }
    parts.push_back(kHeaviest / largest);
    gpus.push_back(units);
  }
  weightings_.push_back(parts);
  weightings_.push_back(gpus);
  for (size_t i = 0; i < classes_.num_amounts(); ++i) {
    std::vector<int64_t>& weights = weightings_.emplace_back();
    for (const Demand& demand : demands_) {
      weights.push_back(classes_.NeedOf(types[At(demand.type)], i));
    }
  }
  for (std::vector<int64_t>& weights : weightings_) Scale(weights);
}

void CoverSearch::WeighCells() {
  for (Cell& cell : cells_) {
    for (const std::vector<int64_t>& weights : weightings_) {
      int64_t most = 0;
      for (const Counts& bundle : cell.bundles) {
        int64_t load = 0;
        for (size_t d = 0; d < bundle.size(); ++d) load += weights[d] * bundle[d];
        most = std::max(most, load);
      }
      cell.loads.push_back(most);
    }
  }
  loads_from_.assign(cells_.size() + 1, std::vector<int64_t>(weightings_.size()));
  for (size_t c = cells_.size(); c > 0; --c) {
    const Cell& cell = cells_[c - 1];
    for (size_t w = 0; w < weightings_.size(); ++w) {
      loads_from_[c - 1][w] =
          loads_from_[c][w] + cell.loads[w] * static_cast<int64_t>(cell.nodes.size());
    }
  }
}

// Whether `left` nodes of `cell` and all later cells cannot carry what is open.
bool CoverSearch::IsTooHeavy(size_t cell, int left, const Open& open) const {
  for (size_t w = 0; w < weightings_.size(); ++w) {
    int64_t weight = 0;
    for (size_t d = 0; d < open.size(); ++d)
      weight += weightings_[w][d] * std::max<int64_t>(open[d], 0);
    const int64_t here = cell < cells_.size() ? cells_[cell].loads[w] * left : 0;
    const size_t next = std::min(cell + 1, cells_.size());
    if (weight > here + loads_from_[next][w]) return true;
  }
  return false;
}

bool CoverSearch::Cover(size_t cell, size_t bundle, int left, Open& open) {
  if (std::ranges::all_of(open, [](int64_t count) { return count <= 0; })) return true;
  if (cell == cells_.size()) return false;
  if (left == 0 || bundle == cells_[cell].bundles.size()) {
    const int next = cell + 1 < cells_.size() ? static_cast<int>(cells_[cell + 1].nodes.size()) : 0;
    return Cover(cell + 1, 0, next, open);
  }
  if (!Spend() || IsTooHeavy(cell, left, open)) return false;
  std::string key;
  for (int part : {static_cast<int>(cell), static_cast<int>(bundle), left}) {
    key.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  for (int64_t count : open) {
    const int64_t positive = std::max<int64_t>(count, 0);
    key.append(reinterpret_cast<const char*>(&positive), sizeof(positive));
  }
  if (failed_.contains(key)) return false;
  const Counts& each = cells_[cell].bundles[bundle];
  int64_t useful = 0;
  for (size_t d = 0; d < open.size(); ++d) {
    if (each[d] > 0 && open[d] > 0) useful = std::max(useful, (open[d] - 1) / each[d] + 1);
  }
  const int most = static_cast<int>(std::min<int64_t>(useful, left));
  // Nodes that no later bundle of the cell would use may as well take this one.
  const bool last = bundle + 1 == cells_[cell].bundles.size();
  for (int uses = most; uses >= (last ? most : 0); --uses) {
    for (size_t d = 0; d < open.size(); ++d) open[d] -= int64_t{uses} * each[d];
    uses_[cell][bundle] = uses;
    if (Cover(cell, bundle + 1, left - uses, open)) return true;
    for (size_t d = 0; d < open.size(); ++d) open[d] += int64_t{uses} * each[d];
    if (undecided_) break;
  }
  uses_[cell][bundle] = 0;
  if (!undecided_) failed_.insert(std::move(key));
  return false;
}

// Hands bundles out to the nodes of each cell in order, without what is too much.
void CoverSearch::WriteCover() {
  Counts open;
  for (const Demand& demand : demands_) open.push_back(demand.need);
  cover_.assign(demands_.size(), {});
  for (size_t c = 0; c < cells_.size(); ++c) {
    size_t node = 0;
    for (size_t b = 0; b < cells_[c].bundles.size(); ++b) {
      for (int i = 0; i < uses_[c][b]; ++i, ++node) {
        for (size_t d = 0; d < open.size(); ++d) {
          const int taken = std::min(cells_[c].bundles[b][d], open[d]);
          if (taken == 0) continue;
          open[d] -= taken;
          cover_[d].emplace_back(cells_[c].nodes[node], taken);
        }
      }
    }
  }
}

}  // namespace tessera
