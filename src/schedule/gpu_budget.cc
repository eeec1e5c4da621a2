#include "tessera/schedule/gpu_budget.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "tessera/base/status.h"
#include "tessera/replicas/plan_replicas.h"
#include "tessera/resources/resource_space.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 3> kVerdicts = {"all", "part", "minimum_does_not_fit"};

absl::Status CheckRange(const std::string& path, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return InvalidAt(path, absl::StrCat("is ", value, ", not within ", low, " and ", high));
}

absl::Status ValidateRole(const ServiceClaim& service, const std::string& path, EngineRole role) {
  const std::string name(ToString(role));
  const int64_t wanted = OfRole(service.engines.wanted, role), held = OfRole(service.held, role);
  TESSERA_RETURN_IF_ERROR(CheckRange(path + ".engines.wanted." + name, wanted, 0, kMaxReplicas));
  TESSERA_RETURN_IF_ERROR(
      CheckRange(path + ".engines.least." + name, OfRole(service.engines.least, role), 0, wanted));
  TESSERA_RETURN_IF_ERROR(CheckRange(path + ".held." + name, held, 0, kMaxReplicas));
  const int64_t cheapest = wanted > 0 || held > 0 ? 1 : 0;
  return CheckRange(path + ".engines.gpus." + name, OfRole(service.engines.gpus, role), cheapest,
                    kMaxGpusPerEngine);
}

// Positions of the services, by name.
absl::StatusOr<std::vector<int>> Validate(std::span<const ServiceClaim> services, int64_t budget) {
  TESSERA_RETURN_IF_ERROR(CheckRange("budget", budget, 0, kMaxBudget));
  std::vector<int> by_name(services.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  const auto at = [&](int s) -> const ServiceClaim& { return services[static_cast<size_t>(s)]; };
  std::ranges::stable_sort(by_name, [&](int a, int b) { return at(a).name < at(b).name; });
  int64_t held = 0;
  for (size_t i = 0; i < services.size(); ++i) {
    const std::string path = absl::StrCat("services[", i, "]");
    if (services[i].name.empty()) return InvalidAt(path + ".name", "is empty");
    TESSERA_RETURN_IF_ERROR(CheckRange(path + ".weight", services[i].weight, 0, kMaxWeight));
    for (EngineRole role : kEngineRoles) {
      TESSERA_RETURN_IF_ERROR(ValidateRole(services[i], path, role));
    }
    held += GpusOf(services[i].engines.gpus, services[i].held);
    if (held > kMaxBudget) {
      return InvalidAt(path + ".held", absl::StrCat("more than ", kMaxBudget, " GPUs in all"));
    }
  }
  for (size_t k = 1; k < by_name.size(); ++k) {
    if (at(by_name[k]).name != at(by_name[k - 1]).name) continue;
    return InvalidAt(absl::StrCat("services[", by_name[k], "].name"),
                     absl::StrCat("two services are named \"", at(by_name[k]).name, "\""));
  }
  return by_name;
}

// One division. Rows are services in order of name.
class BudgetDivider {
 public:
  BudgetDivider(std::span<const ServiceClaim> services, const std::vector<int>& by_name,
                int64_t budget)
      : services_(services), by_name_(by_name), budget_(budget), left_(budget) {
    result_.grants.resize(services.size());
    by_priority_.resize(by_name.size());
    std::iota(by_priority_.begin(), by_priority_.end(), size_t{0});
    std::ranges::stable_sort(
        by_priority_, [this](size_t a, size_t b) { return claim(a).priority > claim(b).priority; });
  }

  BudgetDivision Divide(DivideFunction divide) && {
    AdmitMinimums();
    DivideShares(divide);
    PassOnRest();
    for (size_t row = 0; row < by_name_.size(); ++row) {
      const bool all = grant(row).counts == claim(row).engines.wanted;
      grant(row).verdict = !admitted_[row] ? BudgetVerdict::kMinimumDoesNotFit
                           : all           ? BudgetVerdict::kAll
                                           : BudgetVerdict::kPart;
    }
    WriteSteps();
    return std::move(result_);
  }

 private:
  const ServiceClaim& claim(size_t row) const {
    return services_[static_cast<size_t>(by_name_[row])];
  }
  ServiceGrant& grant(size_t row) { return result_.grants[static_cast<size_t>(by_name_[row])]; }
  int64_t Cost(size_t row, const ReplicaCounts& counts) const {
    return GpusOf(claim(row).engines.gpus, counts);
  }
  bool RunsMinimum(size_t row) const {
    const ReplicaCounts &held = claim(row).held, &least = claim(row).engines.least;
    return held.prefill >= least.prefill && held.decode >= least.decode;
  }

  void AdmitMinimums() {
    std::vector<size_t> order = by_priority_;
    std::ranges::stable_sort(order, [this](size_t a, size_t b) {
      if (claim(a).priority != claim(b).priority) return claim(a).priority > claim(b).priority;
      return RunsMinimum(a) && !RunsMinimum(b);
    });
    admitted_.resize(order.size());
    for (size_t row : order) {
      const int64_t minimum = Cost(row, claim(row).engines.least);
      admitted_[row] = minimum <= left_;
      if (admitted_[row]) Give(row, claim(row).engines.least);
    }
  }

  void DivideShares(DivideFunction divide) {
    const ResourceSpace resources;
    Claims claims(by_name_.size(), resources.size());
    for (size_t row = 0; row < by_name_.size(); ++row) {
      claims.priority[row] = claim(row).priority;
      claims.weight[kGpu][row] = claim(row).weight;
      if (!admitted_[row]) continue;
      const int64_t wanted = std::min(Cost(row, claim(row).engines.wanted), budget_);
      claims.quota[kGpu][row] = grant(row).gpus * kGpuUnitsPerDevice;
      claims.ceiling[kGpu][row] = wanted * kGpuUnitsPerDevice;
    }
    Division division;
    division.whole_gpus = true;
    division.total[kGpu] = division.capacity[kGpu] = budget_ * kGpuUnitsPerDevice;
    division.resources = &resources;
    divide(division, claims);
    for (size_t row : by_priority_) {
      if (!admitted_[row]) continue;
      grant(row).fair_share = claims.share[kGpu][row] / kGpuUnitsPerDevice;
      // Whatever the rule of a host says: the minimum at least, and what there is at most.
      const int64_t minimum = grant(row).gpus;
      const int64_t share = std::clamp(grant(row).fair_share, minimum, minimum + left_);
      Give(row, *FitToCeiling(claim(row).engines, share));
    }
  }

  void Give(size_t row, const ReplicaCounts& counts) {
    left_ += grant(row).gpus;
    grant(row).counts = counts;
    grant(row).gpus = Cost(row, counts);
    left_ -= grant(row).gpus;
  }

  // The next engines of one service, and what of its share is there to pay for them.
  struct NextEngines {
    size_t row = 0;
    ReplicaCounts counts;
    int64_t paid = 0;
    int64_t cost = 0;
  };
  // Whether `a` goes after `b`.
  struct PaidLess {
    bool operator()(const NextEngines& a, const NextEngines& b) const {
      const absl::int128 left = absl::int128(a.paid) * b.cost;
      const absl::int128 right = absl::int128(b.paid) * a.cost;
      return left != right ? left < right : a.row > b.row;
    }
  };
  using Candidates = std::priority_queue<NextEngines, std::vector<NextEngines>, PaidLess>;

  void Push(size_t row, Candidates& candidates) {
    if (!admitted_[row]) return;
    const auto next = NextLarger(claim(row).engines, grant(row).counts);
    if (!next) return;
    candidates.push(
        {row, *next, grant(row).fair_share - grant(row).gpus, Cost(row, *next) - grant(row).gpus});
  }

  void PassOnRest() {
    for (size_t i = 0; i < by_priority_.size();) {
      const int priority = claim(by_priority_[i]).priority;
      Candidates candidates;
      for (; i < by_priority_.size() && claim(by_priority_[i]).priority == priority; ++i) {
        Push(by_priority_[i], candidates);
      }
      while (!candidates.empty()) {
        const NextEngines next = candidates.top();
        candidates.pop();
        if (next.cost > left_) continue;  // for good: what is left only falls
        Give(next.row, next.counts);
        Push(next.row, candidates);
      }
    }
  }

  void WriteSteps() {
    int64_t gpus = 0;
    for (size_t row = 0; row < by_name_.size(); ++row) gpus += Cost(row, claim(row).held);
    result_.peak_gpus = gpus;
    std::vector<size_t> by_name(by_name_.size());
    std::iota(by_name.begin(), by_name.end(), size_t{0});
    for (const bool shrinking : {true, false}) {
      for (size_t row : shrinking ? by_name : by_priority_) {
        for (EngineRole role : kEngineRoles) {
          const int64_t from = OfRole(claim(row).held, role), to = OfRole(grant(row).counts, role);
          if (shrinking ? to >= from : to <= from) continue;
          gpus += (to - from) * OfRole(claim(row).engines.gpus, role);
          result_.steps.push_back({by_name_[row], role, from, to, gpus});
          result_.peak_gpus = std::max(result_.peak_gpus, gpus);
        }
      }
    }
  }

  const std::span<const ServiceClaim> services_;
  const std::vector<int>& by_name_;
  const int64_t budget_;
  int64_t left_;                     // GPUs granted to nobody
  std::vector<size_t> by_priority_;  // rows, high to low, then by name
  std::vector<bool> admitted_;       // rows whose minimum fits
  BudgetDivision result_;
};

}  // namespace

std::string_view ToString(BudgetVerdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

absl::StatusOr<BudgetDivision> DivideGpuBudget(std::span<const ServiceClaim> services,
                                               int64_t budget, DivideFunction divide) {
  TESSERA_ASSIGN_OR_RETURN(const std::vector<int> by_name, Validate(services, budget));
  return BudgetDivider(services, by_name, budget).Divide(divide);
}

}  // namespace tessera
