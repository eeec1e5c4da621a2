#ifndef TESSERA_GPU_GEOMETRY_H_
#define TESSERA_GPU_GEOMETRY_H_

// How to cut GPUs for a known demand: which layouts, and how many GPUs of each.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tessera/gpu/layout.h"

namespace tessera {

// The largest demand for one profile that `PlanGeometry` takes.
inline constexpr int64_t kMaxGeometrySlices = 1000000000;

// So many GPUs with these instances, ascending by start.
struct LayoutShare {
  std::vector<Instance> instances;
  int64_t gpus = 0;

  bool operator==(const LayoutShare&) const = default;
};

struct GeometryPlan {
  std::vector<LayoutShare> layouts;  // different ones, ascending by their instances
  int64_t gpus = 0;                  // the sum over `layouts`
  int64_t lower_bound = 0;           // no plan needs fewer GPUs than this: proven

  // Whether `gpus` is proven to be the least.
  bool optimal() const { return gpus == lower_bound; }

  bool operator==(const GeometryPlan&) const = default;
};

// The fewest GPUs of one model that serve `demand[profile]` slices, and their layouts,
// which hold exactly these slices: where a layout has room for more, it stays free.
//
//   PlanGeometry(tables, {4, 0, 0, 0, 1, 0, 0}, "forecast");  // A100: 4 x 1g, 1 x 3g
//   // one GPU: 1g on the units 0-3, 3g on 4-7
//
// The maximal sets of profiles that one GPU can hold are the columns of an integer
// covering program (cutting stock, after Gilmore and Gomory). Its linear relaxation,
// solved exactly in integers, gives the lower bound; the whole part of that solution
// is taken as it is, and what remains is searched exhaustively. If that misses the
// bound, ever more of the whole part is given back to the search, until the bound is
// met or refuted. Results of up to 64 GPUs may be searched whole; of larger ones only
// so much that 64 GPUs remain open, which has always ended within one GPU of the
// bound. `budget` counts the sets of remaining slices that are looked at, about 5 us
// each; when it is used up, the best plan so far is returned, as `optimal()` tells.
//
// Ties: the plan found first, which depends on nothing but the arguments.
//
// kInvalidArgument: `demand` has not one entry per profile, or one that is negative or
// above `kMaxGeometrySlices`; `path` names it. kResourceExhausted: more than 2^18
// layouts or 4,096 maximal sets from the demanded profiles, as only an invented model
// has. On an invented model whose determinants outgrow 64 bits the bound is that of
// volume alone.
absl::StatusOr<GeometryPlan> PlanGeometry(const MigTables& tables, std::span<const int64_t> demand,
                                          std::string_view path, int64_t budget = 200000);

}  // namespace tessera

#endif  // TESSERA_GPU_GEOMETRY_H_
