#ifndef TESSERA_SRC_VERIFY_PLAN_REPLAY_H_
#define TESSERA_SRC_VERIFY_PLAN_REPLAY_H_

// Carries out the actions of a plan one by one, judging each when it is reached.

#include <string>
#include <vector>

#include "src/verify/plan_layouts.h"
#include "src/verify/plan_occupancy.h"
#include "tessera/verify/check_plan.h"

namespace tessera {

// Violations up to a number, beyond which the check ends.
class ViolationList {
 public:
  explicit ViolationList(int max) : max_(max < 1 ? 1 : static_cast<size_t>(max)) {}

  bool full() const { return violations_.size() >= max_; }
  void Add(int action, std::string text) {
    if (!full()) violations_.push_back({action, std::move(text)});
  }
  std::vector<PlanViolation> Take() && { return std::move(violations_); }

 private:
  size_t max_;
  std::vector<PlanViolation> violations_;
};

class PlanReplay {
 public:
  PlanReplay(const Snapshot& snapshot, const CheckPlanOptions& options, ViolationList& violations);

  void Run(const std::vector<Action>& actions);

  const Snapshot& snapshot() const { return snapshot_; }
  const CheckPlanOptions& options() const { return options_; }
  // Pods after the actions so far.
  PodPhase phase(PodId p) const { return phases_[static_cast<size_t>(p.value())]; }
  // Whether the pod runs or has a reservation, after the actions and before them.
  bool is_up(PodId p) const { return later_.holds(p); }
  bool was_up(PodId p) const;
  // Where a pod is that is up.
  const PodPlacement& placement(PodId p) const { return later_.placement(p); }
  // Whether a bind or a nomination put the pod where it is; and whether a move did.
  bool is_new(PodId p) const { return change(p) == Change::kNew; }
  bool is_moved(PodId p) const { return change(p) == Change::kMoved; }

  void operator()(const EvictAction& action);
  void operator()(const MoveAction& action);
  void operator()(const BindAction& action);
  void operator()(const NominateAction& action);
  void operator()(const DestroyAction& action);
  void operator()(const SetMigAction& action);
  void operator()(const CreateAction& action);

 private:
  enum class Change : char { kNone, kNew, kMoved };

  // A GPU that an action changes; `gpu` is null if there is none.
  struct Device {
    NodeId node;
    int index = 0;
    const Gpu* gpu = nullptr;
    GpuLayout* layout = nullptr;
  };

  Change change(PodId p) const { return changes_[static_cast<size_t>(p.value())]; }
  void SetPhase(PodId p, PodPhase phase) { phases_[static_cast<size_t>(p.value())] = phase; }
  void SetChange(PodId p, Change change) { changes_[static_cast<size_t>(p.value())] = change; }

  // Begins the judgement of an action on `subject` ("bind w/s/0").
  void Speak(std::string subject) { subject_ = std::move(subject); }
  void Report(std::string_view problem);
  std::optional<PodId> Find(const PodRef& ref);
  bool MayStart(PodId p);
  void Place(PodId p, const std::string& node, const Devices& devices, bool now);
  Device FindDevice(const std::string& node, int gpu);
  void ReportHolder(std::string_view text, PodId holder);

  const Snapshot& snapshot_;
  const CheckPlanOptions& options_;
  ViolationList& violations_;
  std::vector<PodPhase> phases_;
  std::vector<Change> changes_;
  PlanLayouts layouts_;
  PlanOccupancy now_;    // running and releasing pods
  PlanOccupancy later_;  // running and nominated pods
  int action_ = 0;
  std::string subject_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_PLAN_REPLAY_H_
