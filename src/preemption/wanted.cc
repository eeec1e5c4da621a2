#include "src/preemption/wanted.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tessera/base/status.h"
#include "tessera/gpu/catalogue.h"

namespace tessera {
namespace {

std::string UnknownNode(const Snapshot& snapshot, const std::string& node) {
  std::vector<std::string_view> known;
  for (const Node& n : snapshot.spec().nodes) known.push_back(n.name);
  std::ranges::sort(known);
  return absl::StrCat("no node is named \"", node, "\"", DidYouMean(node, known));
}

std::string UnknownModel(const Snapshot& snapshot, const std::string& gpu_model) {
  std::vector<std::string_view> known;
  for (int i = 0; i < snapshot.num_models(); ++i) known.push_back(snapshot.model(ModelId(i)).name);
  return absl::StrCat("no node has GPUs of model \"", gpu_model, "\"",
                      DidYouMean(gpu_model, known));
}

// The models of the snapshot and of the catalogue, each name once.
std::vector<const GpuModel*> KnownModels(const Snapshot& snapshot) {
  std::vector<const GpuModel*> models;
  for (int i = 0; i < snapshot.num_models(); ++i) models.push_back(&snapshot.model(ModelId(i)));
  const size_t own = models.size();
  for (const GpuModel& model : GpuCatalogue()) {
    const bool is_own =
        std::any_of(models.begin(), models.begin() + static_cast<std::ptrdiff_t>(own),
                    [&](const GpuModel* known) { return known->name == model.name; });
    if (!is_own) models.push_back(&model);
  }
  return models;
}

}  // namespace

absl::StatusOr<WantedScope> ResolveScope(const Snapshot& snapshot, const std::string& node,
                                         const std::string& gpu_model) {
  WantedScope scope;
  if (!node.empty()) {
    const std::optional<NodeId> n = snapshot.FindNode(node);
    if (!n) return InvalidAt("node", UnknownNode(snapshot, node));
    if (!snapshot.node_model(*n).valid()) return InvalidAt("node", node + " has no GPUs");
    scope.node = *n;
  }
  for (int i = 0; i < snapshot.num_models(); ++i) {
    if (gpu_model.empty() || snapshot.model(ModelId(i)).name == gpu_model) {
      scope.models.push_back(ModelId(i));
    }
  }
  if (scope.models.empty() && !gpu_model.empty()) {
    return InvalidAt("gpu_model", UnknownModel(snapshot, gpu_model));
  }
  if (!scope.node.valid()) return scope;
  const ModelId model = snapshot.node_model(scope.node);
  if (std::ranges::find(scope.models, model) == scope.models.end()) {
    return InvalidAt("gpu_model", absl::StrCat("the GPUs of ", node, " are ",
                                               snapshot.model(model).name, ", not ", gpu_model));
  }
  scope.models = {model};
  return scope;
}

absl::Status CheckProfile(const Snapshot& snapshot, const WantedScope& scope,
                          const std::string& profile, std::string_view path) {
  std::vector<std::string> asked;
  for (ModelId m : scope.models) {
    if (snapshot.model(m).FindProfile(profile)) return absl::OkStatus();
    asked.push_back(snapshot.model(m).name);
  }
  std::vector<std::string> owners;
  std::vector<std::string_view> known;
  for (ModelId m : scope.models) {
    for (const MigProfile& p : snapshot.model(m).profiles) known.push_back(p.name);
  }
  for (const GpuModel* model : KnownModels(snapshot)) {
    if (model->FindProfile(profile)) owners.push_back(model->name);
    for (const MigProfile& p : model->profiles) known.push_back(p.name);
  }
  if (owners.empty()) {
    return InvalidAt(path, absl::StrCat("no GPU model has a profile \"", profile, "\"",
                                        DidYouMean(profile, known)));
  }
  if (asked.empty()) return InvalidAt(path, "no node has GPUs");
  return InvalidAt(path, absl::StrCat(profile, " is a profile of ", absl::StrJoin(owners, ", "),
                                      ", not of ", absl::StrJoin(asked, ", ")));
}

}  // namespace tessera
