#include "tessera/cluster/certificate.h"

#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/resources/quantity.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

std::string PodName(const PodRef& pod) {
  return absl::StrCat(pod.workload, "/", pod.pod_set, "/", pod.index);
}

std::string RuleText(const VictimReport& victim) {
  switch (victim.rule) {
    case YieldRule::kMoved:
      return " moves from ";
    case YieldRule::kPreempted:
    case YieldRule::kReclaimed:
      return " leaves ";
  }
  return "";
}

std::string RightText(const VictimReport& victim) {
  switch (victim.rule) {
    case YieldRule::kMoved:
      return "";
    case YieldRule::kPreempted:
      return absl::StrCat(" by its priority of ", victim.priority);
    case YieldRule::kReclaimed:
      return absl::StrCat(": queue ", victim.queue, " holds ",
                          AmountOf(victim.resource, victim.held), ", its fair share is ",
                          AmountOf(victim.resource, victim.entitled), ", it keeps ",
                          AmountOf(victim.resource, victim.left));
  }
  return "";
}

std::string_view NeedText(YieldNeed need) {
  switch (need) {
    case YieldNeed::kRoom:
      return "its place is needed";
    case YieldNeed::kMove:
      return "its place is needed for another that moves";
    case YieldNeed::kGang:
      return "its gang cannot go on without the others";
    case YieldNeed::kLimit:
      return "a limit does not permit both";
    case YieldNeed::kEntitlement:
      return "the claimant would exceed its entitlement beside it";
  }
  return "";
}

std::string_view ProofText(Minimality minimality) {
  switch (minimality) {
    case Minimality::kInclusion:
      return "none of them could stay";
    case Minimality::kFewest:
      return "none of them could stay, and fewer do not suffice";
    case Minimality::kCheapest:
      return "nothing cheaper suffices";
  }
  return "";
}

}  // namespace

std::string_view ToString(RoomStep step) {
  switch (step) {
    case RoomStep::kFree:
      return "free";
    case RoomStep::kRepartition:
      return "repartition";
    case RoomStep::kConsolidate:
      return "consolidate";
    case RoomStep::kReclaim:
      return "reclaim";
    case RoomStep::kPreempt:
      return "preempt";
    case RoomStep::kEvict:
      return "evict";
  }
  return "";
}

std::string AmountOf(std::string_view resource, int64_t amount) {
  if (resource == "cpu") return FormatQuantity(amount, kMillisPerCore, Rounding::kUp) + " cores";
  if (resource == "memory") return FormatBytes(amount) + " of memory";
  if (resource == "gpu_memory") return FormatBytes(amount) + " of GPU memory";
  const bool gpu = resource == "gpu" || resource.starts_with("gpu:");
  if (!gpu) return absl::StrCat(amount, " ", ToAbsl(resource));
  std::string text = FormatQuantity(amount, kGpuUnitsPerDevice, Rounding::kUp) + " GPU";
  if (resource != "gpu") absl::StrAppend(&text, " of ", ToAbsl(resource.substr(4)));
  return text;
}

std::string ToText(const Certificate& certificate) {
  const std::string subject = certificate.claimant;
  if (!certificate.refusal.empty()) {
    const std::string step = certificate.step == RoomStep::kEvict
                                 ? ""
                                 : absl::StrCat(" by ", ToAbsl(ToString(certificate.step)));
    return absl::StrCat(subject, certificate.proven ? " has no room" : " found no room", step, ": ",
                        certificate.refusal);
  }
  std::string text;
  if (certificate.victims.empty()) {
    text = absl::StrCat(subject, " fits, nobody has to yield");
  } else {
    const size_t pods = certificate.victims.size();
    text = absl::StrCat(pods, pods == 1 ? " pod yields for " : " pods yield for ", subject, " (",
                        ToAbsl(ToString(certificate.step)), "), at a cost of ", certificate.cost,
                        ": ", ToAbsl(ProofText(certificate.minimality)));
  }
  if (certificate.mig_operations > 0) {
    absl::StrAppend(&text, "\n", certificate.mig_operations,
                    " MIG instances are created or destroyed");
  }
  for (const VictimReport& victim : certificate.victims) {
    absl::StrAppend(&text, "\n", PodName(victim.pod), RuleText(victim), victim.node,
                    RightText(victim), "; ", ToAbsl(NeedText(victim.need)));
  }
  return text;
}

}  // namespace tessera
