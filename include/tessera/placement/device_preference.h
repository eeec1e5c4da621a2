#ifndef TESSERA_PLACEMENT_DEVICE_PREFERENCE_H_
#define TESSERA_PLACEMENT_DEVICE_PREFERENCE_H_

namespace tessera {

// How GPUs are chosen within a node.
enum class DevicePreference {
  kPack,    // used devices first, the fullest that still suffices
  kSpread,  // free devices first, then the emptiest
};

}  // namespace tessera

#endif  // TESSERA_PLACEMENT_DEVICE_PREFERENCE_H_
