#include "src/preemption/gang_cut.h"

#include <algorithm>

namespace tessera {

template <typename Visit>
void GangCut::ForEachPod(int g, Visit visit) const {
  if (!at(g).is_pod_set()) {
    for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
      ForEachPod(c, visit);
    }
    return;
  }
  for (int i = 0; i < set(g).count; ++i) visit(set(g).pod(i));
}

int GangCut::Stays(int g) const {
  int count = 0;
  ForEachPod(g, [&](PodId p) { count += up(p) && !leaves(p) ? 1 : 0; });
  return count;
}

int GangCut::Leaves(int g) const {
  int count = 0;
  ForEachPod(g, [&](PodId p) { count += up(p) && leaves(p) ? 1 : 0; });
  return count;
}

int GangCut::Succeeded(int g) const {
  int count = 0;
  ForEachPod(g, [&](PodId p) { count += snapshot_.pod_phase(p) == PodPhase::kSucceeded ? 1 : 0; });
  return count;
}

bool GangCut::Holds(int g) const {
  if (at(g).is_pod_set()) return Stays(g) + Succeeded(g) >= set(g).min_count;
  int holding = 0;
  for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
    holding += at(c).after < 0 && Holds(c) ? 1 : 0;
  }
  return holding >= at(g).min_children;
}

bool GangCut::IsSoundBelow(int g) const {
  if (Stays(g) == 0) return true;
  if (!Holds(g)) return false;
  if (at(g).is_pod_set()) return true;
  for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
    const bool waits = at(c).after >= 0 && Stays(c) > 0;
    if (!IsSoundBelow(c) || (waits && !Holds(at(c).after))) return false;
  }
  return true;
}

void GangCut::TakeAll(int g, std::vector<PodId>& added) {
  ForEachPod(g, [&](PodId p) {
    if (!up(p) || leaves(p)) return;
    leaves_[static_cast<size_t>(p.value())] = 1;
    added.push_back(p);
  });
}

std::vector<PodId> GangCut::Close() {
  std::vector<PodId> added;
  if (Leaves(0) > 0) CloseBelow(0, added);
  return added;
}

// Closes what is below `g`, of a gang that loses something: what is below its minimum goes, even if
// it was before. Tells whether the minimum of `g` still holds.
bool GangCut::CloseBelow(int g, std::vector<PodId>& added) {
  if (at(g).is_pod_set()) {
    const bool holds = Stays(g) + Succeeded(g) >= set(g).min_count;
    if (!holds) TakeAll(g, added);
    return holds;
  }
  const int begin = at(g).first_child, end = begin + at(g).num_children;
  std::vector<char> holds(static_cast<size_t>(at(g).num_children));
  for (int c = begin; c < end; ++c) holds[static_cast<size_t>(c - begin)] = CloseBelow(c, added);
  // What waits for a part that is gone goes, and what waits for that.
  for (bool changed = true; changed;) {
    changed = false;
    for (int c = begin; c < end; ++c) {
      const int after = at(c).after;
      if (after < 0 || holds[static_cast<size_t>(after - begin)] || Stays(c) == 0) continue;
      TakeAll(c, added);
      holds[static_cast<size_t>(c - begin)] = CloseBelow(c, added);
      changed = true;
    }
  }
  int holding = 0;
  for (int c = begin; c < end; ++c) {
    holding += at(c).after < 0 && holds[static_cast<size_t>(c - begin)] ? 1 : 0;
  }
  if (holding >= at(g).min_children) return true;
  TakeAll(g, added);
  return false;
}

// The pods without which `g`, of which all leaves, could not have been; what it could have
// done without is added to `units`.
std::vector<PodId> GangCut::CoreOf(int g, std::vector<std::vector<PodId>>& units) const {
  std::vector<PodId> core;
  if (at(g).is_pod_set()) {
    const int needed = std::max(set(g).min_count - Succeeded(g), 0);
    for (int i = 0; i < set(g).count; ++i) {
      const PodId p = set(g).pod(i);
      if (!up(p)) continue;
      if (static_cast<int>(core.size()) < needed) {
        core.push_back(p);
      } else {
        units.push_back({p});
      }
    }
    return core;
  }
  int parts = 0;
  for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
    std::vector<PodId> part = CoreOf(c, units);
    const bool needed = at(c).after < 0 && parts < at(g).min_children;
    if (needed) {
      core.insert(core.end(), part.begin(), part.end());
      ++parts;
    } else if (!part.empty()) {
      units.push_back(std::move(part));
    }
  }
  return core;
}

void GangCut::AddUnits(int g, std::vector<std::vector<PodId>>& units) const {
  if (Leaves(g) == 0) return;
  if (Stays(g) == 0) {
    std::vector<PodId> core = CoreOf(g, units);
    if (!core.empty()) units.push_back(std::move(core));
    return;
  }
  if (at(g).is_pod_set()) {
    ForEachPod(g, [&](PodId p) {
      if (up(p) && leaves(p)) units.push_back({p});
    });
    return;
  }
  for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
    AddUnits(c, units);
  }
}

std::vector<std::vector<PodId>> GangCut::Units() const {
  std::vector<std::vector<PodId>> units;
  AddUnits(0, units);
  for (std::vector<PodId>& unit : units) std::ranges::sort(unit);
  return units;
}

}  // namespace tessera
