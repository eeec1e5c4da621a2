#include "src/gpu/place_search.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace tessera {
namespace {

// A GPU in the middle of the search.
struct TargetState {
  LayoutKey key;
  uint16_t fixed = 0;      // units that no displacement frees
  uint32_t displaced = 0;  // pieces that have left
};

// One decision, after those of `parent`.
struct Node {
  int parent = -1;
  PlaceStep step;
  PlaceCost cost;
  int open = 0;  // items without a place
};

// A node in the queue; `judged` once its bound counts what its items must cost.
struct Entry {
  PlaceCost bound;
  int open = 0;
  int node = 0;
  bool judged = false;

  bool operator>(const Entry& other) const {
    return std::tie(bound, open, node) > std::tie(other.bound, other.open, other.node);
  }
};

class PlaceSearch {
 public:
  PlaceSearch(const PlaceProblem& problem, int64_t budget, const PlaceAccept& accept)
      : problem_(problem), tables_(*problem.tables), budget_(budget), accept_(accept) {
    for (const MigProfile& profile : tables_.model().profiles) sizes_.push_back(profile.size);
    free_.assign(sizes_.size(), -1);
    least_.resize(sizes_.size());
    for (const PlaceTarget& target : problem.targets) starts_.push_back(StateOf(target));
    touched_at_.assign(problem.targets.size(), -1);
    nodes_.reserve(4 * problem.targets.size() + 1);
    queue_.reserve(nodes_.capacity());
    FindAlike();
  }

  PlaceResult Run() {
    nodes_.push_back({-1, {}, {}, static_cast<int>(problem_.wanted.size())});
    if (problem_.wanted.empty()) return ResultOf(0);
    Push({{}, nodes_[0].open, 0, true});
    while (!queue_.empty() && budget_ > 0) {
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      const Entry entry = queue_.back();
      queue_.pop_back();
      if (entry.open == 0) {
        PlaceResult result = ResultOf(entry.node);
        if (accept_(result, budget_)) return result;
        continue;
      }
      Replay(entry.node);
      if (!entry.judged && !Judge(entry)) continue;
      if (auto result = Expand(entry)) return *std::move(result);
    }
    PlaceResult result;
    result.end = budget_ > 0 ? PlaceEnd::kInfeasible : PlaceEnd::kExhausted;
    return result;
  }

 private:
  uint16_t BitsOf(const Instance& instance) const {
    return static_cast<uint16_t>(((1u << sizes_[instance.profile]) - 1) << instance.start);
  }

  TargetState StateOf(const PlaceTarget& target) const {
    TargetState state;
    for (const Piece& piece : target.pieces) {
      state.key = tables_.Add(state.key, piece.instance.profile, piece.instance.start);
      if (!piece.displaceable) state.fixed |= BitsOf(piece.instance);
    }
    return state;
  }

  // GPUs that are alike form a group; only its first untouched one is of interest.
  void FindAlike();

  bool IsOfInterest(int g) const {
    return touched_at_[g] >= 0 || rank_[g] <= touched_in_group_[group_[g]];
  }

  bool IsTouched(int g) const { return touched_at_[g] >= 0 && !as_untouched_; }

  const TargetState& State(int g) const {
    return IsTouched(g) ? touched_[touched_at_[g]].second : starts_[g];
  }

  // Sets items, touched GPUs and surplus to where the decisions up to `node` lead.
  void Replay(int node);
  void Apply(const PlaceStep& step);

  // The open item to place next: the largest, then that of the lowest profile.
  int NextItem() const;

  // What displacing these pieces costs, and how many of them need a new place.
  std::pair<PlaceCost, int> PriceOf(int g, uint32_t displaced) const;

  // Calls `visit(start, displaced)` for every way to place `profile` on GPU `g`; stops
  // when it returns false.
  template <typename Visit>
  bool ForEachPlace(int g, int profile, const Visit& visit);

  // Of pieces from `first` on, displaces those of every combination that makes room in
  // what units alone do not limit.
  template <typename Visit>
  bool DisplaceMore(int g, const Instance& at, LayoutKey key, uint32_t displaced, size_t first,
                    const Visit& visit);

  // How many instances of `profile` GPU `g` holds more without any cost.
  int FreeOn(int g, int profile) const;
  int64_t FreeNow(int profile);

  // The least cost of a place for `profile` that is not free: on GPU `g`, or anywhere;
  // none if there is no such place.
  std::optional<PlaceCost> LeastOn(int g, int profile);
  std::optional<PlaceCost> LeastNow(int profile);

  // What the open items must cost at least; none if they cannot all be placed.
  std::optional<PlaceCost> LeastOfOpen();

  // Whether the bound of `entry` stands when its items are looked at; if it rises the
  // entry returns to the queue, or is dropped if one of them cannot be placed. So it is
  // if the search has been at the same places before.
  bool Judge(Entry entry);
  bool IsNew();

  // Queues what can be decided next; a full result that costs no more than `entry` is
  // returned at once.
  std::optional<PlaceResult> Expand(const Entry& entry);

  PlaceResult ResultOf(int node);

  void Push(const Entry& entry) {
    queue_.push_back(entry);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }

  const PlaceProblem& problem_;
  const MigTables& tables_;
  int64_t budget_;
  const PlaceAccept& accept_;
  std::vector<int> sizes_;
  std::vector<TargetState> starts_;  // before any decision
  std::vector<int> group_;           // [gpu]
  std::vector<int> rank_;            // [gpu] among its group
  std::vector<int64_t> free_;        // [profile] on untouched GPUs, or -1 if not known yet
  std::vector<std::optional<std::optional<PlaceCost>>> least_;  // [profile] likewise
  std::set<std::vector<std::array<uint32_t, 3>>> seen_;         // places of judged nodes
  std::vector<Node> nodes_;
  std::vector<Entry> queue_;  // a heap

  // Of the node that was replayed last.
  std::vector<PlaceItem> items_;
  std::vector<bool> placed_;
  std::vector<PlaceStep> steps_;
  std::vector<std::pair<int, TargetState>> touched_;
  std::vector<int> touched_at_;  // [gpu] in `touched_`, or -1
  std::vector<int> touched_in_group_;
  std::vector<int64_t> surplus_;
  bool as_untouched_ = false;  // looks at GPUs as they were, for what is kept of all nodes
};

// A hash to sort few candidates by; equality decides.
uint64_t HashOf(const PlaceTarget& target) {
  uint64_t hash = target.only_slots ? 1 : 2;
  const auto mix = [&hash](int64_t value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  };
  for (const Piece& piece : target.pieces) {
    mix(piece.instance.profile * 64 + piece.instance.start * 2 + (piece.displaceable ? 1 : 0));
    mix(piece.cost);
  }
  for (const Instance& slot : target.slots) mix(slot.profile * 64 + slot.start);
  mix(target.entry_cost);
  return hash;
}

void PlaceSearch::FindAlike() {
  const size_t count = problem_.targets.size();
  size_t buckets = 16;
  while (buckets < 2 * count) buckets *= 2;
  std::vector<int> first(buckets, -1);  // a GPU of the group in that bucket
  group_.assign(count, 0);
  rank_.assign(count, 0);
  for (size_t g = 0; g < count; ++g) {
    size_t b = HashOf(problem_.targets[g]) & (buckets - 1);
    while (first[b] >= 0 && problem_.targets[first[b]] != problem_.targets[g]) {
      b = (b + 1) & (buckets - 1);
    }
    if (first[b] < 0) {
      first[b] = static_cast<int>(g);
      group_[g] = static_cast<int>(touched_in_group_.size());
      touched_in_group_.push_back(0);
    } else {
      group_[g] = group_[first[b]];
      rank_[g] = touched_in_group_[group_[g]];
    }
    ++touched_in_group_[group_[g]];
  }
  std::fill(touched_in_group_.begin(), touched_in_group_.end(), 0);
}

void PlaceSearch::Replay(int node) {
  for (const auto& [g, state] : touched_) {
    touched_at_[g] = -1;
    --touched_in_group_[group_[g]];
  }
  touched_.clear();
  items_.clear();
  steps_.clear();
  surplus_ = problem_.surplus;
  for (const int profile : problem_.wanted) items_.push_back({profile, -1, -1});
  placed_.assign(items_.size(), false);
  for (; node > 0; node = nodes_[node].parent) steps_.push_back(nodes_[node].step);
  std::reverse(steps_.begin(), steps_.end());
  for (const PlaceStep& step : steps_) Apply(step);
}

void PlaceSearch::Apply(const PlaceStep& step) {
  const int g = step.gpu;
  if (touched_at_[g] < 0) {
    touched_at_[g] = static_cast<int>(touched_.size());
    touched_.emplace_back(g, starts_[g]);
    ++touched_in_group_[group_[g]];
  }
  TargetState& state = touched_[touched_at_[g]].second;
  const std::vector<Piece>& pieces = problem_.targets[g].pieces;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (((step.displaced >> i) & 1) == 0) continue;
    const auto& [profile, start] = pieces[i].instance;
    state.key = tables_.Remove(state.key, profile, start);
    if (surplus_[profile] > 0) {
      --surplus_[profile];
    } else {
      items_.push_back({profile, g, static_cast<int>(i)});
      placed_.push_back(false);
    }
  }
  state.displaced |= step.displaced;
  state.key = tables_.Add(state.key, step.at.profile, step.at.start);
  state.fixed |= BitsOf(step.at);
  placed_[step.item] = true;
}

int PlaceSearch::NextItem() const {
  int next = -1;
  for (int i = 0; i < static_cast<int>(items_.size()); ++i) {
    if (placed_[i]) continue;
    const auto rank = [this](int item) {
      return std::pair(-sizes_[items_[item].profile], items_[item].profile);
    };
    if (next < 0 || rank(i) < rank(next)) next = i;
  }
  return next;
}

std::pair<PlaceCost, int> PlaceSearch::PriceOf(int g, uint32_t displaced) const {
  const std::vector<Piece>& pieces = problem_.targets[g].pieces;
  PlaceCost cost;
  int returning = 0;
  if (!IsTouched(g)) cost.sum = problem_.targets[g].entry_cost;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (((displaced >> i) & 1) == 0) continue;
    cost = cost + PlaceCost{pieces[i].cost, 1};
    int64_t spare = surplus_[pieces[i].instance.profile];
    for (size_t j = 0; j < i && spare > 0; ++j) {
      const bool same = pieces[j].instance.profile == pieces[i].instance.profile;
      if (((displaced >> j) & 1) != 0 && same) --spare;
    }
    if (spare > 0) continue;
    cost.sum += problem_.return_cost;
    ++returning;
  }
  return {cost, returning};
}

template <typename Visit>
bool PlaceSearch::DisplaceMore(int g, const Instance& at, LayoutKey key, uint32_t displaced,
                               size_t first, const Visit& visit) {
  if (tables_.CanPlace(key, at.profile, at.start)) return visit(at.start, displaced);
  const std::vector<Piece>& pieces = problem_.targets[g].pieces;
  const uint32_t gone = displaced | State(g).displaced;
  for (size_t i = first; i < pieces.size(); ++i) {
    if (((gone >> i) & 1) != 0 || !pieces[i].displaceable) continue;
    const auto& [profile, start] = pieces[i].instance;
    const LayoutKey next = tables_.Remove(key, profile, start);
    if (!DisplaceMore(g, at, next, displaced | (1u << i), i + 1, visit)) return false;
  }
  return true;
}

template <typename Visit>
bool PlaceSearch::ForEachPlace(int g, int profile, const Visit& visit) {
  const PlaceTarget& target = problem_.targets[g];
  const TargetState state = State(g);
  if (target.only_slots) {
    for (const Instance& slot : target.slots) {
      --budget_;
      if (slot.profile != profile || !tables_.CanPlace(state.key, profile, slot.start)) continue;
      if (!visit(slot.start, 0u)) return false;
    }
    return true;
  }
  for (unsigned starts = tables_.LegalStarts(tables_.empty(), profile); starts != 0;
       starts &= starts - 1) {
    --budget_;
    const Instance at = {profile, __builtin_ctz(starts)};
    const uint16_t bits = BitsOf(at);
    if ((bits & state.fixed) != 0) continue;
    LayoutKey key = state.key;
    uint32_t displaced = 0;
    bool useful = true;
    for (size_t i = 0; i < target.pieces.size() && (bits & key.mask) != 0; ++i) {
      const Instance& piece = target.pieces[i].instance;
      if (((state.displaced >> i) & 1) != 0 || (BitsOf(piece) & bits) == 0) continue;
      // Who takes the place of its like could as well go where that one goes.
      useful = useful && piece != at;
      key = tables_.Remove(key, piece.profile, piece.start);
      displaced |= 1u << i;
    }
    if (useful && !DisplaceMore(g, at, key, displaced, 0, visit)) return false;
  }
  return true;
}

int PlaceSearch::FreeOn(int g, int profile) const {
  const PlaceTarget& target = problem_.targets[g];
  if (target.entry_cost > 0 && !IsTouched(g)) return 0;
  const LayoutKey key = State(g).key;
  if (!target.only_slots) return tables_.Capacity(key, profile);
  return static_cast<int>(
      std::count_if(target.slots.begin(), target.slots.end(), [&](const Instance& slot) {
        return slot.profile == profile && tables_.CanPlace(key, profile, slot.start);
      }));
}

int64_t PlaceSearch::FreeNow(int profile) {
  int64_t now = 0, before = 0;
  for (const auto& [g, state] : touched_) now += FreeOn(g, profile);
  as_untouched_ = true;
  if (free_[profile] < 0) {
    free_[profile] = 0;
    for (int g = 0; g < static_cast<int>(rank_.size()); ++g) free_[profile] += FreeOn(g, profile);
  }
  for (const auto& [g, state] : touched_) before += FreeOn(g, profile);
  as_untouched_ = false;
  return free_[profile] - before + now;
}

std::optional<PlaceCost> PlaceSearch::LeastOn(int g, int profile) {
  std::optional<PlaceCost> least;
  ForEachPlace(g, profile, [&](int, uint32_t displaced) {
    PlaceCost cost;
    const PlaceTarget& target = problem_.targets[g];
    if (!IsTouched(g)) cost.sum = target.entry_cost;
    if (displaced == 0 && cost.sum == 0) return true;
    for (size_t i = 0; i < target.pieces.size(); ++i) {
      if (((displaced >> i) & 1) != 0) cost = cost + PlaceCost{target.pieces[i].cost, 1};
    }
    if (!least || cost < *least) least = cost;
    return true;
  });
  return least;
}

std::optional<PlaceCost> PlaceSearch::LeastNow(int profile) {
  if (!least_[profile]) {
    as_untouched_ = true;
    std::optional<PlaceCost> least;
    for (int g = 0; g < static_cast<int>(rank_.size()); ++g) {
      if (rank_[g] > 0) continue;
      const std::optional<PlaceCost> on = LeastOn(g, profile);
      if (on && (!least || *on < *least)) least = on;
    }
    as_untouched_ = false;
    least_[profile] = least;
  }
  std::optional<PlaceCost> least = *least_[profile];
  for (const auto& [g, state] : touched_) {
    const std::optional<PlaceCost> on = LeastOn(g, profile);
    if (on && (!least || *on < *least)) least = on;
  }
  return least;
}

std::optional<PlaceCost> PlaceSearch::LeastOfOpen() {
  // If the free places are too few for one profile, some item takes another place. The
  // next item does if it has none itself; otherwise any may, and thereby make room.
  const int next = items_[NextItem()].profile;
  if (FreeNow(next) == 0) return LeastNow(next);
  std::vector<int64_t> open(sizes_.size(), 0);
  for (size_t i = 0; i < items_.size(); ++i) open[items_[i].profile] += placed_[i] ? 0 : 1;
  bool too_few = false;
  for (int p = 0; p < static_cast<int>(open.size()) && !too_few; ++p) {
    too_few = open[p] > 0 && open[p] > FreeNow(p);
  }
  if (!too_few) return PlaceCost();
  std::optional<PlaceCost> least;
  for (int p = 0; p < static_cast<int>(open.size()); ++p) {
    if (open[p] == 0) continue;
    const std::optional<PlaceCost> of = LeastNow(p);
    if (of && (!least || *of < *least)) least = of;
  }
  return least;
}

bool PlaceSearch::Judge(Entry entry) {
  if (!IsNew()) return false;
  const std::optional<PlaceCost> least = LeastOfOpen();
  if (!least) return false;
  const PlaceCost bound = nodes_[entry.node].cost + *least;
  if (bound <= entry.bound) return true;
  entry.bound = bound;
  entry.judged = true;
  Push(entry);
  return false;
}

// What is open follows from what was displaced; which of several like items stands
// where does not matter.
bool PlaceSearch::IsNew() {
  std::vector<std::array<uint32_t, 3>> places;
  for (const auto& [g, state] : touched_)
    places.push_back({static_cast<uint32_t>(g), state.displaced, 0});
  for (const PlaceStep& step : steps_) {
    places.push_back({static_cast<uint32_t>(step.gpu), static_cast<uint32_t>(step.at.start),
                      static_cast<uint32_t>(step.at.profile) + 1});
  }
  std::sort(places.begin(), places.end());
  return seen_.insert(std::move(places)).second;
}

std::optional<PlaceResult> PlaceSearch::Expand(const Entry& entry) {
  const Node node = nodes_[entry.node];
  const int item = NextItem();
  const int profile = items_[item].profile;
  std::optional<PlaceResult> found;
  for (int g = 0; g < static_cast<int>(rank_.size()) && !found && budget_ > 0; ++g) {
    if (!IsOfInterest(g)) continue;
    ForEachPlace(g, profile, [&](int start, uint32_t displaced) {
      const auto [price, returning] = PriceOf(g, displaced);
      const PlaceCost cost = node.cost + price;
      const int child = static_cast<int>(nodes_.size());
      nodes_.push_back(
          {entry.node, {item, g, {profile, start}, displaced}, cost, node.open - 1 + returning});
      if (nodes_.back().open > 0 || cost > entry.bound) {
        Push({std::max(cost, entry.bound), nodes_.back().open, child, false});
        return true;
      }
      PlaceResult result = ResultOf(child);
      Replay(entry.node);
      if (accept_(result, budget_)) found = std::move(result);
      return !found;
    });
  }
  return found;
}

PlaceResult PlaceSearch::ResultOf(int node) {
  Replay(node);
  return {PlaceEnd::kFound, nodes_[node].cost, items_, steps_};
}

}  // namespace

PlaceResult SearchPlaces(const PlaceProblem& problem, int64_t budget, const PlaceAccept& accept) {
  return PlaceSearch(problem, budget, accept).Run();
}

}  // namespace tessera
