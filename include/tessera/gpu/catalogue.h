#ifndef TESSERA_GPU_CATALOGUE_H_
#define TESSERA_GPU_CATALOGUE_H_

// The GPUs that support MIG, with every profile and its legal starts.
//
// Sources: NVIDIA MIG User Guide (tables of supported profiles), and what NVML
// reports on hardware where captures are public. `MigProfile::evidence` tells
// starts that were seen from those that follow the GPU's family: A30, A100, H100
// 80/94 GB and RTX PRO 6000 are confirmed, all others inferred.
//
// Where a memory size is not published in MiB, the size in the name stands in for
// it, which overstates what a program sees by up to a tenth. The names of GB200
// profiles differ between boards and drivers; those of the 186 GB board are listed.

#include <span>
#include <string_view>

#include "tessera/gpu/model.h"

namespace tessera {

// All models, in the order of their generations; 18 models with 127 profiles. The
// span stays valid for the life of the program. Built on the first call, which may
// come from any thread.
std::span<const GpuModel> GpuCatalogue();

// The catalogue's model of that name, or null. Short names stand for the only
// model they can mean: "H200" for "H200-141GB", "RTX-PRO-6000" for
// "RTX-PRO-6000-BLACKWELL-96GB"; there is no "A100", "H100" or "GH200", whose
// memory sizes differ. O(models).
const GpuModel* FindGpuModel(std::string_view name);

}  // namespace tessera

#endif  // TESSERA_GPU_CATALOGUE_H_
