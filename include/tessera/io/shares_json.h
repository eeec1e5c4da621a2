#ifndef TESSERA_IO_SHARES_JSON_H_
#define TESSERA_IO_SHARES_JSON_H_

// Fair shares and MIG geometry as JSON, for other programs.

#include <string>

#include "tessera/cluster/fair_shares.h"
#include "tessera/cluster/snapshot.h"
#include "tessera/gpu/layout.h"
#include "tessera/gpu/model.h"
#include "tessera/io/mig_formats.h"

namespace tessera {

// `{"queues": [{"name", "parent", "resources": {"gpu": {"quota", "limit",
// "demand", "allocated", "fair_share"}, ...}, "dominant_resource",
// "dominant_share"}]}`, queues by name. GPU in devices, CPU in cores, memory in
// bytes; no limit and unlimited quota are "unlimited". The dominant share is that
// of what is allocated, in cluster capacity; the resource is null where nothing is.
std::string WriteShares(const Snapshot& snapshot, const FairShares& shares);

// `{"model", "units", "profiles": [{"name", "size", "starts", "max"}]}`.
std::string WriteMigModel(const GpuModel& model);

// `{"model", "units", "gpus": [{"gpu", "instances": [{"profile", "start"}], "profiles":
// [{"name", "capacity", "starts", "best_start", "loss"}]}]}`: per GPU what is there, and
// for every profile how many still fit, where one may start, which start is best and
// what it costs (`MigTables::BestStart`, `Loss`; null where none fits).
// Precondition: the layouts are legal.
std::string WriteMigLayouts(const MigTables& tables, const LayoutsByGpu& layouts);

}  // namespace tessera

#endif  // TESSERA_IO_SHARES_JSON_H_
