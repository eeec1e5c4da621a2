#ifndef TESSERA_SRC_PREEMPTION_MOVE_WRITER_H_
#define TESSERA_SRC_PREEMPTION_MOVE_WRITER_H_

// Turns moves between instances into the actions of a plan.

#include <string>
#include <utility>
#include <vector>

#include "src/preemption/slice_view.h"
#include "tessera/cluster/plan.h"
#include "tessera/gpu/defragmentation.h"

namespace tessera {

class MoveWriter {
 public:
  // Both arguments must outlive the object.
  MoveWriter(const Snapshot& snapshot, const SliceView& view);

  // Makes the target if that is possible now, and moves the pod.
  void Move(const InstanceMove& move);

  // Makes an instance of a place that the moves leave free. False if pods are leaving it.
  bool Make(const InstancePlace& place);

  std::vector<Action> TakeActions() && { return std::move(actions_); }

 private:
  // An instance that exists.
  struct Standing {
    Instance instance;
    bool is_held = false;
  };
  struct Device {
    bool mig_enabled = false;
    std::vector<Standing> standing;
    std::vector<Instance> awaited;  // targets that do not exist yet
  };

  const std::string& NameOf(const Instance& instance) const {
    return tables_.model().profiles[static_cast<size_t>(instance.profile)].name;
  }
  std::vector<Instance> InTheWay(const Device& device, LayoutKey held,
                                 const Instance& wanted) const;
  bool MakeRoom(int gpu, const Instance& wanted);
  void Replace(int gpu, const std::vector<Instance>& gone, const Instance& wanted);
  Standing* Find(Device& device, const Instance& instance);

  const Snapshot& snapshot_;
  const SliceView& view_;
  const MigTables& tables_;
  std::vector<Device> devices_;
  std::vector<Action> actions_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_PREEMPTION_MOVE_WRITER_H_
