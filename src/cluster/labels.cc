#include "tessera/cluster/labels.h"

#include <algorithm>

namespace tessera {
namespace {

bool Holds(const SelectorTerm& term, const Labels& labels) {
  const auto label = labels.find(term.key);
  const bool present = label != labels.end();
  switch (term.op) {
    case SelectorOperator::kExists:
      return present;
    case SelectorOperator::kDoesNotExist:
      return !present;
    case SelectorOperator::kIn:
      return present && std::ranges::find(term.values, label->second) != term.values.end();
    case SelectorOperator::kNotIn:
      return !present || std::ranges::find(term.values, label->second) == term.values.end();
  }
  return false;
}

bool Accepts(const Toleration& toleration, const Taint& taint) {
  if (!toleration.any_effect && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  return toleration.exists || (!toleration.key.empty() && toleration.value == taint.value);
}

}  // namespace

bool Matches(const Selector& selector, const Labels& labels) {
  return std::ranges::all_of(selector,
                             [&labels](const SelectorTerm& term) { return Holds(term, labels); });
}

bool Tolerates(std::span<const Toleration> tolerations, std::span<const Taint> taints) {
  return std::ranges::all_of(taints, [&tolerations](const Taint& taint) {
    if (taint.effect == TaintEffect::kPreferNoSchedule) return true;
    return std::ranges::any_of(tolerations,
                               [&taint](const Toleration& t) { return Accepts(t, taint); });
  });
}

}  // namespace tessera
