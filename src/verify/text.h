#ifndef TESSERA_SRC_VERIFY_TEXT_H_
#define TESSERA_SRC_VERIFY_TEXT_H_

// How the referees speak of what they judge.

#include <string>

#include "tessera/cluster/snapshot.h"
#include "tessera/cluster/workload.h"
#include "tessera/resources/resource_space.h"

namespace tessera {

// "llama/prefill/0".
std::string NameOf(const PodRef& pod);
std::string NameOf(const Snapshot& snapshot, PodId pod);

// "2.5 gpu", "64 GiB memory", "3 nvidia.com/ib".
std::string AmountText(const ResourceSpace& resources, int r, int64_t amount);

}  // namespace tessera

#endif  // TESSERA_SRC_VERIFY_TEXT_H_
