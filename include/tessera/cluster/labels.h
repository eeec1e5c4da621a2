#ifndef TESSERA_CLUSTER_LABELS_H_
#define TESSERA_CLUSTER_LABELS_H_

// Node labels, the selectors that ask for them, taints and the tolerations that
// accept them; the semantics are those of Kubernetes.

#include <map>
#include <span>
#include <string>
#include <vector>

namespace tessera {

using Labels = std::map<std::string, std::string, std::less<>>;

enum class SelectorOperator { kIn, kNotIn, kExists, kDoesNotExist };

// One condition on one label. "Equals" is `kIn` with one value. A node without
// the label satisfies `kNotIn` and `kDoesNotExist`.
struct SelectorTerm {
  std::string key;
  SelectorOperator op = SelectorOperator::kIn;
  std::vector<std::string> values;  // for kIn and kNotIn, at least one

  friend bool operator==(const SelectorTerm&, const SelectorTerm&) = default;
};

// All terms must hold; an empty selector matches every node.
using Selector = std::vector<SelectorTerm>;

enum class TaintEffect { kNoSchedule, kPreferNoSchedule, kNoExecute };

// A mark that keeps pods away that do not tolerate it. `kPreferNoSchedule` is
// carried but bars nobody.
struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;

  friend bool operator==(const Taint&, const Taint&) = default;
};

// Accepts taints of `key` (every key if empty, which needs `exists`), of `value`
// unless `exists`, and of every effect unless `effect` is one.
struct Toleration {
  std::string key;
  bool exists = false;
  std::string value;
  bool any_effect = true;
  TaintEffect effect = TaintEffect::kNoSchedule;

  friend bool operator==(const Toleration&, const Toleration&) = default;
};

// True when `labels` satisfy every term. O(terms * (log labels + values)).
bool Matches(const Selector& selector, const Labels& labels);

// True when every taint that bars scheduling is tolerated. O(taints * tolerations).
bool Tolerates(std::span<const Toleration> tolerations, std::span<const Taint> taints);

}  // namespace tessera

#endif  // TESSERA_CLUSTER_LABELS_H_
