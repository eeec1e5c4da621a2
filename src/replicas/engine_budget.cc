#include "tessera/replicas/engine_budget.h"

#include <algorithm>

namespace tessera {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The part num / den of what is wanted.
struct Part {
  int64_t num = 0;
  int64_t den = 1;
};

// Both roles at `part` of what they want, in whole engines.
ReplicaCounts AtPart(const EngineClaims& claims, Part part) {
  ReplicaCounts counts;
  for (EngineRole role : kEngineRoles) {
    const int64_t wanted = OfRole(claims.wanted, role);
    const int64_t count = CeilDiv(wanted * part.num, part.den);
    OfRole(counts, role) = std::clamp(count, OfRole(claims.least, role), wanted);
  }
  return counts;
}

// The largest k in [low, high] for which `holds`, which is true at `low` and false from
// some point on.
template <typename Predicate>
int64_t LastTrue(int64_t low, int64_t high, Predicate holds) {
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Adds engines, of each role up to `most`, until `floor` is reached.
void TopUp(const EngineGpus& gpus, const ReplicaCounts& most, int64_t floor, int64_t ceiling,
           ReplicaCounts& counts) {
  std::array order = kEngineRoles;
  if (gpus.decode > gpus.prefill) std::swap(order[0], order[1]);
  for (EngineRole role : order) {
    const int64_t held = GpusOf(gpus, counts), size = OfRole(gpus, role);
    if (held >= floor) return;
    const int64_t lacking = CeilDiv(floor - held, size), room = (ceiling - held) / size;
    const int64_t left = OfRole(most, role) - OfRole(counts, role);
    OfRole(counts, role) += std::max<int64_t>(std::min({lacking, room, left}), 0);
  }
}

}  // namespace

std::string_view ToString(EngineRole role) {
  return role == EngineRole::kPrefill ? "prefill" : "decode";
}

std::optional<ReplicaCounts> FitToCeiling(const EngineClaims& claims, int64_t ceiling) {
  const auto fits = [&](Part part) { return GpusOf(claims.gpus, AtPart(claims, part)) <= ceiling; };
  Part best;
  if (!fits(best)) return std::nullopt;
  // Counts change only at parts k / wanted of some role.
  for (EngineRole role : kEngineRoles) {
    const int64_t wanted = OfRole(claims.wanted, role);
    if (wanted == 0) continue;
    const int64_t k = LastTrue(0, wanted, [&](int64_t num) { return fits({num, wanted}); });
    if (k * best.den > best.num * wanted) best = {k, wanted};
  }
  return AtPart(claims, best);
}

std::optional<ReplicaCounts> NextLarger(const EngineClaims& claims, const ReplicaCounts& granted) {
  const ReplicaCounts& wanted = claims.wanted;
  const bool prefill_open = granted.prefill < wanted.prefill;
  const bool decode_open = granted.decode < wanted.decode;
  if (!prefill_open && !decode_open) return std::nullopt;
  // The narrower role widens; both, where they are equally narrow.
  const int64_t prefill_part = granted.prefill * wanted.decode;
  const int64_t decode_part = granted.decode * wanted.prefill;
  ReplicaCounts next = granted;
  if (prefill_open && (!decode_open || prefill_part <= decode_part)) ++next.prefill;
  if (decode_open && (!prefill_open || decode_part <= prefill_part)) ++next.decode;
  return next;
}

ReplicaCounts RaiseToFloor(const EngineClaims& claims, int64_t floor, int64_t ceiling,
                           const ReplicaCounts& counts) {
  const EngineGpus& gpus = claims.gpus;
  ReplicaCounts raised = counts;
  TopUp(gpus, claims.least, floor, ceiling, raised);
  const int64_t pace = std::max(raised.prefill, raised.decode);
  if (pace > 0 && GpusOf(gpus, raised) < floor) {
    const auto grown = [&](int64_t k) {
      ReplicaCounts all = raised;
      for (EngineRole role : kEngineRoles) {
        const int64_t most = std::max(OfRole(claims.wanted, role), OfRole(raised, role));
        OfRole(all, role) = std::min(CeilDiv(OfRole(raised, role) * k, pace), most);
      }
      return all;
    };
    const auto gpus_at = [&](int64_t k) { return GpusOf(gpus, grown(k)); };
    const int64_t below =
        LastTrue(pace, kMaxReplicas, [&](int64_t k) { return gpus_at(k) < floor; });
    const int64_t allowed =
        LastTrue(pace, kMaxReplicas, [&](int64_t k) { return gpus_at(k) <= ceiling; });
    raised = grown(std::min({below + 1, allowed, kMaxReplicas}));
  }
  TopUp(gpus, claims.wanted, floor, ceiling, raised);
  return raised;
}

Transition PlanTransition(const EngineGpus& gpus, const ReplicaCounts& held,
                          const ReplicaCounts& target) {
  Transition transition;
  ReplicaCounts now = held;
  transition.peak_gpus = GpusOf(gpus, held);
  for (const bool shrinking : {true, false}) {
    for (EngineRole role : kEngineRoles) {
      const int64_t from = OfRole(held, role), to = OfRole(target, role);
      if (shrinking ? to >= from : to <= from) continue;
      OfRole(now, role) = to;
      const int64_t after = GpusOf(gpus, now);
      transition.steps.push_back({role, from, to, after});
      transition.peak_gpus = std::max(transition.peak_gpus, after);
    }
  }
  return transition;
}

}  // namespace tessera
