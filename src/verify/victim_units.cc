#include "src/verify/victim_units.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace tessera {
namespace {

// Counts of one part of the gang tree.
struct Part {
  std::vector<PodId> pods;  // all below, ascending within each set
  int before = 0, after = 0, succeeded = 0;
  bool holds = false;  // its minimum, afterwards
};

// By node of the gang tree; children have higher numbers than their parents.
std::vector<Part> PartsOf(const GangBeforeAfter& gang) {
  const Snapshot& snapshot = gang.snapshot;
  const std::span<const GangNode> tree = snapshot.gang(gang.workload);
  std::vector<Part> parts(tree.size());
  for (size_t i = tree.size(); i-- > 0;) {
    const GangNode& node = tree[i];
    Part& part = parts[i];
    if (node.is_pod_set()) {
      const PodSetInfo& set = snapshot.pod_sets(gang.workload)[static_cast<size_t>(node.pod_set)];
      for (int k = 0; k < set.count; ++k) {
        const PodId p = set.pod(k);
        part.pods.push_back(p);
        part.before += gang.was_up(p);
        part.after += gang.is_up(p);
        part.succeeded += snapshot.pod_phase(p) == PodPhase::kSucceeded;
      }
      part.holds = part.after + part.succeeded >= set.min_count;
      continue;
    }
    int holding = 0;
    for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
      const Part& child = parts[static_cast<size_t>(c)];
      part.pods.insert(part.pods.end(), child.pods.begin(), child.pods.end());
      part.before += child.before;
      part.after += child.after;
      holding += tree[static_cast<size_t>(c)].after < 0 && child.holds;
    }
    part.holds = holding >= node.min_children;
  }
  return parts;
}

class Splitter {
 public:
  Splitter(const GangBeforeAfter& gang, const std::vector<Part>& parts)
      : gang_(gang), tree_(gang.snapshot.gang(gang.workload)), parts_(parts) {}

  std::vector<std::vector<PodId>> Run() && {
    Split(0);
    return std::move(units_);
  }

 private:
  void Split(int g) {
    const Part& part = parts_[static_cast<size_t>(g)];
    const GangNode& node = tree_[static_cast<size_t>(g)];
    if (part.before == part.after) return;
    if (part.after == 0) return AddUnit(SplitEnded(g));
    if (node.is_pod_set()) {
      for (PodId p : part.pods) {
        if (gang_.was_up(p) && !gang_.is_up(p)) AddUnit({p});
      }
      return;
    }
    for (int c = node.first_child; c < node.first_child + node.num_children; ++c) Split(c);
  }

  // The indispensable pods of a part of which nothing is left; adds the others as units.
  std::vector<PodId> SplitEnded(int g) {
    const Part& part = parts_[static_cast<size_t>(g)];
    const GangNode& node = tree_[static_cast<size_t>(g)];
    std::vector<PodId> core;
    if (node.is_pod_set()) {
      const PodSetInfo& set =
          gang_.snapshot.pod_sets(gang_.workload)[static_cast<size_t>(node.pod_set)];
      int needed = set.min_count - part.succeeded;
      for (PodId p : part.pods) {
        if (!gang_.was_up(p)) continue;
        if (needed-- > 0) {
          core.push_back(p);
        } else {
          AddUnit({p});
        }
      }
      return core;
    }
    int needed = node.min_children;
    for (int c = node.first_child; c < node.first_child + node.num_children; ++c) {
      std::vector<PodId> below = SplitEnded(c);
      const bool in_core = tree_[static_cast<size_t>(c)].after < 0 && needed-- > 0;
      if (in_core) {
        core.insert(core.end(), below.begin(), below.end());
      } else {
        AddUnit(std::move(below));
      }
    }
    return core;
  }

  void AddUnit(std::vector<PodId> unit) {
    if (!unit.empty()) units_.push_back(std::move(unit));
  }

  const GangBeforeAfter& gang_;
  const std::span<const GangNode> tree_;
  const std::vector<Part>& parts_;
  std::vector<std::vector<PodId>> units_;
};

}  // namespace

bool IsWholeAfter(const GangBeforeAfter& gang) { return PartsOf(gang).front().holds; }

std::string WhyNotLegal(const GangBeforeAfter& gang) {
  const std::vector<Part> parts = PartsOf(gang);
  const std::span<const GangNode> tree = gang.snapshot.gang(gang.workload);
  if (parts[0].before == parts[0].after || parts[0].after == 0) return "";
  if (!parts[0].holds) return absl::StrCat(parts[0].after, " pods stay, and the gang is not whole");
  for (size_t i = 0; i < tree.size(); ++i) {
    // A part that was emptied lies in one that holds; so does one whose base went.
    if (parts[i].after == 0) continue;
    if (!parts[i].holds) {
      return absl::StrCat(parts[i].after, " pods stay of a part that is below its minimum");
    }
    const int after = tree[i].after;
    if (after >= 0 && !parts[static_cast<size_t>(after)].holds) {
      return absl::StrCat(parts[i].after, " pods stay of a part whose base is gone");
    }
  }
  return "";
}

bool LostOnlySurplus(const GangBeforeAfter& gang) {
  const std::vector<Part> parts = PartsOf(gang);
  const std::span<const GangNode> tree = gang.snapshot.gang(gang.workload);
  for (size_t i = 0; i < tree.size(); ++i) {
    const bool lost = tree[i].is_pod_set() && parts[i].after < parts[i].before;
    if (lost && !parts[i].holds) return false;
  }
  return true;
}

std::vector<std::vector<PodId>> UnitsOf(const GangBeforeAfter& gang) {
  const std::vector<Part> parts = PartsOf(gang);
  return Splitter(gang, parts).Run();
}

}  // namespace tessera
