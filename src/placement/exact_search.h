#ifndef TESSERA_SRC_PLACEMENT_EXACT_SEARCH_H_
#define TESSERA_SRC_PLACEMENT_EXACT_SEARCH_H_

// The second gear: finds a place for a gang whenever there is one, or proves that
// there is none, within a budget of steps.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "src/placement/cover_search.h"
#include "src/placement/gang_view.h"
#include "src/placement/node_classes.h"
#include "tessera/placement/gang_placement.h"

namespace tessera {

// One search for what part `g` of a gang lacks of its minimum, within a range.
//
// 1. Domains first: it walks the gang's tree and chooses for every group which
//    children make up its minimum, and for every required level a domain. Domains
//    whose nodes are of the same classes stand for each other, and equal siblings
//    take domains in order. A domain is skipped if some part does not find its
//    count there alone (counts of each type per domain are sums over classes).
// 2. Once a part has its domains, what it asks must have a cover (`CoverSearch`)
//    together with what was chosen before (pods with a bound per domain are first dealt
//    out to the domains); parts that share no node are covered
//    apart, and answers are remembered by the classes of the domain.
// 3. Where the account refuses what was found, pods are also split over GPU models
//    in every way that the account permits. An account must decide by the pod and
//    the GPU model alone, and refuse no less after charging more.
//
// Preferred levels and the finder's preferences play no part.
class ExactSearch {
 public:
  ExactSearch(ClusterState& state, const GangView& view, Account* account, int64_t budget);

  // Places the minimum of `g` in the state and charges it; `pods()` are those
  // placed. kNo: proven that it cannot be. On kNo and kUndecided the state and the
  // account are as they were. With `tied`, the level that `g` itself requires is
  // kept, too.
  Verdict Place(int g, NodeRange range, bool tied);

  const std::vector<PodId>& pods() const { return pods_; }
  // After kNo: a place exists, but the account refuses this pod set; else invalid.
  PodSetId refused() const { return refused_; }

 private:
  struct Task {
    enum Stage : uint8_t { kConstrain, kMeet, kCheck };
    int g = 0;
    NodeRange range;
    Stage stage = kConstrain;
  };
  // A demand with the leaf that it is for.
  struct Want {
    Demand demand;
    int leaf = 0;
  };
  // Wants whose ranges overlap, equal demands merged.
  struct Component {
    std::vector<Demand> demands;
    std::vector<std::vector<int>> wants;  // by demand: indices of `wants_`
  };
  using Agenda = std::vector<Task>;
  using DomainKey = std::pair<int64_t, int>;  // free GPUs, domain
  using RangeKey = std::array<int, 3>;        // gang node or level, begin, end
  struct Candidate {
    NodeRange nodes;
    DomainKey order;
  };

  // What a domain takes at most of a leaf that has a bound in each.
  struct Share {
    NodeRange nodes;
    int most = 0;
    std::string likeness;
  };
  using Next = absl::FunctionRef<bool()>;

  bool Spend();
  void CollectLeaves(int g, std::vector<int>& leaves) const;
  void CollectAnchors(int g);
  Verdict Search(int g, NodeRange range, bool tied);

  // exact_search.cc: the walk through the tree.
  bool Expand(Agenda& agenda);
  bool ExpandTask(const Task& task, Agenda& agenda);
  bool TryDomains(const Task& task, Agenda& agenda);
  bool ChooseChildren(const Task& task, Agenda& agenda);
  bool ChooseFrom(std::span<const int> eligible, size_t at, size_t missing,
                  std::vector<int>& chosen, const Task& task, Agenda& agenda);
  bool PushChildren(std::vector<int> chosen, const Task& task, Agenda& agenda);
  bool AddWant(const Task& task, Agenda& agenda);
  std::vector<Share> SharesOf(int leaf, NodeRange range);
  bool Spread(int leaf, std::span<const Share> shares, size_t at, int left, int last,
              Agenda& agenda);
  bool AddPart(int leaf, NodeRange range, int need, size_t first, Next next);
  bool Split(int leaf, NodeRange range, std::span<const ModelId> models, int left, size_t first,
             Next next);

  // exact_domains.cc: which domains, and which of them are alike.
  int Missing(int g) const;
  bool MayMeet(int g, NodeRange range);
  bool MayHold(int g, NodeRange range);
  std::vector<Candidate> CandidatesOf(int g, NodeRange range) const;
  std::string LikenessOf(int level, NodeRange nodes);
  const std::string& ContentOf(int level, NodeRange nodes);
  const std::string& SignatureOf(int g) { return signatures_[static_cast<size_t>(g)]; }
  std::string MakeSignature(int g);

  // exact_cover.cc: covers and places.
  std::vector<Component> ComponentsOf() const;
  std::string KeyOf(const Component& component);
  bool IsCoverable();
  bool Finish();
  bool Commit(const std::map<int, std::vector<int>>& by_node);
  bool PackNode(NodeId n, const std::vector<int>& pods,
                std::vector<std::pair<PodId, PodPlacement>>& placements);
  PodPlacement ExampleOn(int leaf, NodeRange range, ModelId model) const;
  bool RefusesLeast(std::span<const std::pair<PodId, PodPlacement>> placements);

  ClusterState& state_;
  const Snapshot& snapshot_;
  const GangView& view_;
  Account* const account_;
  int64_t budget_;
  std::optional<NodeClasses> classes_;
  bool undecided_ = false;
  bool stopped_ = false;  // the account refused what was found without it
  bool splits_ = false;   // over models, as the account permits
  bool found_cover_ = false;
  size_t account_mark_ = 0;
  std::vector<int> levels_;                  // that the gang requires, outermost first
  std::vector<NodeRange> anchors_;           // domains that running pods tie parts to
  std::vector<std::vector<PodId>> missing_;  // by gang node: pods that may be placed
  std::vector<std::string> signatures_;      // by gang node
  std::vector<Want> wants_;
  std::vector<int> twin_;                         // by gang node: an equal sibling before it
  std::vector<std::optional<DomainKey>> chosen_;  // by gang node
  std::map<RangeKey, bool> may_meet_;
  std::map<RangeKey, std::string> contents_;
  absl::flat_hash_map<std::string, Verdict> covered_;
  std::vector<PodId> pods_;
  PodSetId refused_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PLACEMENT_EXACT_SEARCH_H_
